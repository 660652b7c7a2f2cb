"""Alembic writes migrations of a model and of its second version, applies them and takes them back; then SQLModel."""

import glob
import os
import re

import alembic.command
import alembic_models
from alembic.config import Config
from step import URL, step

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "alembic")

config = Config(os.path.join(HERE, "alembic.ini"), stdout=open(os.devnull, "w"))
config.set_main_option("script_location", FOLDER)
config.set_main_option("sqlalchemy.url", URL.replace("postgres://", "postgresql+psycopg://"))
alembic.command.init(config, FOLDER)
environment = os.path.join(FOLDER, "env.py")
with open(environment) as file:
    text = file.read()
models = f"import sys; sys.path.insert(0, {HERE!r}); import alembic_models; target_metadata = alembic_models.metadata()"
text = text.replace("target_metadata = None", models)
with open(environment, "w") as file:
    file.write(text.replace("fileConfig(config.config_file_name)", "pass"))


def written(version):
    """What the migration does, without what differs from run to run."""
    [path] = glob.glob(os.path.join(FOLDER, f"versions/*v{version}.py"))
    with open(path) as migration:
        source = migration.read()
    return re.sub(r"[0-9a-f]{12}", "REVISION", source[source.index("def upgrade") :])


def revise(version):
    alembic.command.revision(config, f"v{version}", autogenerate=True)
    return written(version)


for version in "12":
    os.environ["MODEL_VERSION"] = version
    step(f"revision {version}", lambda: revise(version))
    step(f"upgrade {version}", lambda: alembic.command.upgrade(config, "head"))
step("check", lambda: alembic.command.check(config))
step("down by one", lambda: alembic.command.downgrade(config, "-1"))
step("down", lambda: alembic.command.downgrade(config, "base"))
step("sqlmodel", lambda: alembic_models.work(URL.replace("postgres://", "postgresql+psycopg://")))
