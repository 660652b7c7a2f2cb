"""Rails: Active Record (the version of Debian) migrates, dumps its schema and loads it again, and works with models."""

from report import Result


def run(context):
    server = context.server("server")
    results = context.work / "results"
    url = {"SUITE_HOST": server.host, "SUITE_PORT": str(server.port)}
    found = context.run(["ruby", "work.rb", *context.only], results, context.log("rails"), 300, url, context.folder)
    context.close(server)
    return found or [Result("rails", "fail", "nothing ran")]
