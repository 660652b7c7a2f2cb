# Active Record as a Rails application uses it: migrations forth and back, schema.rb, models, associations, locks, bulk statements.
# Each check is a test of its own; what it told goes to $SUITE_RESULTS as lines of JSON.
require "active_record"
require "json"
require "logger"
require "stringio"
require "tempfile"

ActiveRecord::Base.logger = Logger.new(File::NULL)
ActiveRecord::Migration.verbose = false
CONFIGURATION = {
  adapter: "postgresql", host: ENV.fetch("SUITE_HOST"), port: Integer(ENV.fetch("SUITE_PORT")), username: "postgres", database: "postgres", pool: 5,
}.freeze

def check(name)
  return unless ARGV.empty? || ARGV.any? { |word| name.include?(word) }
  status, detail = "pass", ""
  begin
    yield
  rescue Exception => error # Load errors and failed expectations alike.
    status, detail = "fail", "#{error.class}: #{error.message}\n#{error.backtrace.first(5).join("\n")}"
  end
  File.open(ENV.fetch("SUITE_RESULTS"), "a") { |file| file.puts JSON.generate(name: name, status: status, detail: detail) }
end

def expect(wanted, found)
  raise "wanted #{wanted.inspect}, found #{found.inspect}" unless wanted == found
end

ActiveRecord::Base.establish_connection(CONFIGURATION)
CONNECTION = ActiveRecord::Base.connection

class One < ActiveRecord::Migration[6.1]
  def change
    create_table :authors, comment: "who writes" do |t|
      t.string :name, null: false, limit: 80
      t.string :email, index: { unique: true }
      t.integer :books_count, default: 0, null: false
      t.boolean :active, default: true
      t.date :born
      t.timestamps precision: 6
    end
    create_table :books do |t|
      t.references :author, null: false, foreign_key: { on_delete: :cascade }
      t.string :title, null: false
      t.text :body
      t.decimal :price, precision: 10, scale: 2
      t.float :rating
      t.bigint :copies
      t.integer :state, limit: 2, default: 0
      t.integer :lock_version, default: 0
      t.jsonb :facts, default: {}, null: false
      t.string :labels, array: true, default: []
      t.uuid :code, default: -> { "gen_random_uuid()" }
      t.binary :cover
      t.time :hour
      t.datetime :at, precision: 6
      t.timestamps
    end
    add_index :books, :title
    add_index :books, [:author_id, :title], unique: true, name: "one_title"
    add_index :books, :price, where: "price > 0", name: "priced"
    add_index :books, "lower(title)", name: "lower_title"
    add_check_constraint :books, "price >= 0", name: "price_check"
  end
end

class Two < ActiveRecord::Migration[6.1]
  def up
    add_column :books, :pages, :integer
    rename_column :books, :copies, :stock
    change_column :books, :rating, :decimal, precision: 4, scale: 2
    change_column_default :books, :state, from: 0, to: 1
    change_column_null :books, :body, false, ""
    change_column_comment :books, :title, "as on the cover"
    rename_index :books, "priced", "with_price"
    remove_index :books, name: "lower_title"
    create_join_table :books, :authors, table_name: :translations
    execute "CREATE VIEW cheap AS SELECT id, title FROM books WHERE price < 10"
    add_timestamps :translations, null: true
  end

  def down
    execute "DROP VIEW cheap"
    drop_table :translations
    add_index :books, "lower(title)", name: "lower_title"
    rename_index :books, "with_price", "priced"
    change_column_null :books, :body, true
    change_column_default :books, :state, from: 1, to: 0
    change_column :books, :rating, :float
    rename_column :books, :stock, :copies
    remove_column :books, :pages
  end
end

def migrator(direction, version = nil)
  schema = ActiveRecord::SchemaMigration
  schema.create_table
  one, two = One.new("One", 1), Two.new("Two", 2)
  ActiveRecord::Migrator.new(direction, [one, two], schema, version).migrate
end

check("migrate up to the first") { migrator(:up, 1); expect(%w[authors books], (CONNECTION.tables - %w[schema_migrations ar_internal_metadata]).sort) }
check("migrate up") { migrator(:up); expect(%w[1 2], ActiveRecord::SchemaMigration.pluck(:version).sort) }
check("migrate down and up again") { migrator(:down, 1); migrator(:up) }
check("columns are told") do
  columns = CONNECTION.columns(:books).to_h { |column| [column.name, column] }
  expect("numeric(10,2)", columns["price"].sql_type)
  expect("character varying", columns["labels"].sql_type)
  expect(true, columns["labels"].array)
  expect("gen_random_uuid()", columns["code"].default_function)
  expect("as on the cover", columns["title"].comment)
  expect("1", columns["state"].default)
end
check("indexes are told") do
  indexes = CONNECTION.indexes(:books).to_h { |index| [index.name, index] }
  expect(%w[author_id title], indexes["one_title"].columns)
  expect(true, indexes["one_title"].unique)
  expect("(price > (0)::numeric)", indexes["with_price"].where)
end
check("foreign keys and checks are told") do
  key = CONNECTION.foreign_keys(:books).first
  expect(["authors", "author_id", :cascade], [key.to_table, key.column, key.on_delete])
  expect(["price_check"], CONNECTION.check_constraints(:books).map(&:name))
  expect("id", CONNECTION.primary_key(:books))
  expect(%w[cheap], CONNECTION.views)
  expect("who writes", CONNECTION.table_comment(:authors))
end

class Author < ActiveRecord::Base
  has_many :books, dependent: :destroy
  validates :email, uniqueness: true, allow_nil: true
end

class Book < ActiveRecord::Base
  belongs_to :author, counter_cache: true
  enum state: { draft: 0, printed: 1, sold: 2 }
  scope :dear, -> { where("price > ?", 20) }
end

check("create, find, update, destroy") do
  author = Author.create!(name: "Zoë", email: "z@example.org", born: Date.new(1970, 2, 28))
  found = Author.find(author.id)
  expect(["Zoë", Date.new(1970, 2, 28), true], [found.name, found.born, found.active])
  found.update!(name: "Zoe")
  expect("Zoe", Author.find_by(email: "z@example.org").name)
  expect(true, found.saved_change_to_name?)
  found.destroy!
  expect(false, Author.exists?(author.id))
end
check("every type goes in and out") do
  author = Author.create!(name: "types")
  at = Time.utc(2024, 2, 29, 12, 30, 45, 123_456)
  given = { title: "t", body: "☃", price: BigDecimal("19.90"), rating: BigDecimal("4.25"), stock: 2**40, pages: 7, facts: { "a" => [1, nil, { "b" => true }] },
            labels: ["x", "y z", 'q"u', "{c}"], cover: "\x00\xFF\x10".b, at: at, hour: Time.utc(2000, 1, 1, 23, 59, 58) }
  book = Book.create!(given.merge(author: author)).reload
  given.each { |name, value| expect(value, book.public_send(name)) }
  raise "no uuid" unless book.code =~ /\A\h{8}-\h{4}-4/
  expect("printed", book.state)
end
check("counter caches and associations") do
  author = Author.create!(name: "many")
  3.times { |n| author.books.create!(title: "b#{n}", body: "", price: n * 15) }
  expect(3, author.reload.books_count)
  expect(%w[b2], author.books.dear.pluck(:title))
  expect([["many", 3]], Author.joins(:books).where(id: author.id).group(:name).count.to_a)
  expect(1, Author.includes(:books).where(books: { title: "b1" }).references(:books).where(id: author.id).to_a.size)
  expect(3, Author.preload(:books).find(author.id).books.size)
  expect(%w[b0 b1], Author.eager_load(:books).find(author.id).books.sort_by(&:title).first(2).map(&:title))
  expect([0], Author.left_joins(:books).where(books: { id: nil }).where(name: "many").ids.map { 1 }.push(0))
end
check("calculations") do
  author = Author.find_by!(name: "many")
  expect([BigDecimal(45), BigDecimal(15), 0, 30], [author.books.sum(:price), author.books.average(:price), author.books.minimum(:price), author.books.maximum(:price)])
  expect({ "printed" => 3 }, author.books.group(:state).count)
  expect(2, author.books.where("price > 0").distinct.count(:price))
  expect([["b2", 30]], author.books.order(price: :desc).limit(1).pluck(:title, :price).map { |title, price| [title, price.to_i] })
end
check("queries on jsonb and arrays") do
  expect(1, Book.where("facts @> ?", { a: [1] }.to_json).count)
  expect(1, Book.where("labels @> ARRAY[?]::varchar[]", ["y z"]).count)
  expect(1, Book.where("? = ANY (labels)", "x").count)
  expect(1, Book.where("facts ->> 'a' IS NOT NULL").count)
end
check("where, or, not, having, unions of ranges") do
  expect(2, Book.where(title: %w[b0 b1]).count)
  expect(2, Book.where(title: "b0").or(Book.where(title: "b1")).count)
  expect(2, Book.where(price: 10..40).where.not(title: "t").count)
  expect(1, Author.joins(:books).group("authors.id").having("count(*) > 2").count.size)
  expect(1, Book.where(at: ..Time.utc(2025)).count)
  expect(3, Book.where(author: Author.where(name: "many")).count)
  expect(0, Book.none.count)
end
check("transactions and savepoints") do
  before = Author.count
  Author.transaction do
    Author.create!(name: "outer")
    Author.transaction(requires_new: true) { Author.create!(name: "inner"); raise ActiveRecord::Rollback }
  end
  expect(before + 1, Author.count)
  Author.transaction(isolation: :serializable) { Author.create!(name: "serial") }
  expect(before + 2, Author.count)
end
check("errors are named") do
  author = Author.find_by!(name: "many")
  { ActiveRecord::RecordNotUnique => -> { Book.insert!({ author_id: author.id, title: "b0", body: "", created_at: Time.now, updated_at: Time.now }) },
    ActiveRecord::InvalidForeignKey => -> { Book.insert!({ author_id: 0, title: "x", body: "", created_at: Time.now, updated_at: Time.now }) },
    ActiveRecord::NotNullViolation => -> { Author.insert!({ name: nil, created_at: Time.now, updated_at: Time.now }) },
    ActiveRecord::ValueTooLong => -> { Author.create!(name: "x" * 81) },
    ActiveRecord::RangeError => -> { Book.where(stock: 1).update_all("state = 70000") },
    ActiveRecord::StatementInvalid => -> { CONNECTION.execute("SELECT * FROM no_such_table") } }.each do |wanted, work|
    begin
      ActiveRecord::Base.transaction(requires_new: true) { work.call }
    rescue ActiveRecord::ActiveRecordError => error
      raise "wanted #{wanted}, found #{error.class}: #{error.message}" unless error.is_a?(wanted)
      next
    end
    raise "no #{wanted}" unless wanted == ActiveRecord::RangeError
  end
end
check("optimistic locking") do
  first = Book.find_by!(title: "b0")
  second = Book.find(first.id)
  first.update!(pages: 1)
  begin
    second.update!(pages: 2)
    raise "not stale"
  rescue ActiveRecord::StaleObjectError
  end
end
check("row locks") do
  Author.transaction do
    author = Author.lock.find_by!(name: "many")
    author.with_lock("FOR UPDATE NOWAIT") { author.update!(active: false) }
    expect(1, Author.lock("FOR UPDATE SKIP LOCKED").where(name: "many").to_a.size)
  end
end
check("insert_all and upsert_all") do
  now = Time.now.utc
  rows = (1..50).map { |n| { name: "bulk #{n}", email: "bulk#{n}@example.org", created_at: now, updated_at: now } }
  expect(50, Author.insert_all(rows).length)
  expect(0, Author.insert_all(rows, unique_by: :email).length)
  Author.upsert_all(rows.map { |row| row.merge(name: row[:name].upcase) }, unique_by: :email)
  expect(50, Author.where("name LIKE 'BULK%'").count)
  expect(%w[id], Author.insert_all([{ name: "returning", created_at: now, updated_at: now }], returning: :id).columns)
end
check("find_each, in_batches, update_all, delete_all") do
  seen = 0
  Author.where("name LIKE 'BULK%'").find_each(batch_size: 7) { seen += 1 }
  expect(50, seen)
  Author.where("name LIKE 'BULK%'").in_batches(of: 20) { |batch| batch.update_all("books_count = books_count + 1") }
  expect(50, Author.where("name LIKE 'BULK%'").sum(:books_count))
  expect(50, Author.where("name LIKE 'BULK%'").delete_all)
end
check("update through a join, delete with a limit") do
  expect(3, Book.joins(:author).where(authors: { name: "many" }).update_all(pages: 9))
  expect(1, Book.where(pages: 9).order(:id).limit(1).delete_all)
end
check("prepared statements and query cache") do
  id = Author.first.id
  20.times { Author.find(id) }
  Author.cache { 3.times { Author.find(id) } }
  raise "nothing prepared" if CONNECTION.select_value("SELECT count(*) FROM pg_prepared_statements").zero?
end
check("a column appears under prepared statements") do
  Author.find_by(name: "many")
  CONNECTION.add_column :authors, :extra, :string
  Author.reset_column_information
  expect("many", Author.find_by(name: "many").name)
  CONNECTION.remove_column :authors, :extra
  Author.reset_column_information
end
check("advisory locks") do
  expect(true, CONNECTION.get_advisory_lock(4711))
  expect(true, CONNECTION.release_advisory_lock(4711))
end
check("explain") { raise "no plan" unless Book.where(id: 1).explain.include?("books_pkey") }
check("threads share a pool") do
  sums = 8.times.map { |n| Thread.new { ActiveRecord::Base.connection_pool.with_connection { |c| c.select_value("SELECT #{n} + 1") } } }.map(&:value)
  expect((1..8).to_a, sums)
end
check("schema.rb is dumped and loaded") do
  dump = lambda do
    io = StringIO.new
    ActiveRecord::SchemaDumper.dump(CONNECTION, io)
    io.string
  end
  first = dump.call
  CONNECTION.execute("DROP VIEW cheap")
  Tempfile.create(["schema", ".rb"]) { |file| file.write(first); file.flush; load(file.path) }
  expect(first, dump.call)
end
check("other objects") do
  CONNECTION.enable_extension("plpgsql")
  CONNECTION.create_schema("other")
  expect(true, CONNECTION.schema_exists?("other"))
  expect("UTF8", CONNECTION.encoding)
  expect(true, CONNECTION.table_exists?("other.nothing") == false)
  CONNECTION.rename_table(:books, :volumes)
  expect(true, CONNECTION.table_exists?(:volumes))
  CONNECTION.truncate(:volumes)
  CONNECTION.reset_pk_sequence!(:authors)
  CONNECTION.drop_table(:volumes, force: :cascade)
  CONNECTION.drop_schema("other")
  expect("postgres", CONNECTION.current_database)
end
check("disable_referential_integrity for fixtures") { CONNECTION.disable_referential_integrity { Author.delete_all } }
