// The second version is the first with changes of every kind: what a migration alters. Prints it.
'use strict';
const fs = require('node:fs');
let text = fs.readFileSync(process.argv[2], 'utf8');
function change(from, to) {
  if (!text.includes(from)) throw new Error(`schema1.ts has no ${from}`);
  text = text.replace(from, to);
}
change("['new', 'paid', 'sent']", "['new', 'paid', 'packed', 'sent', 'returned']");
change("varchar('name', { length: 80 }).notNull()", "varchar('name', { length: 120 }).notNull()");
change("active: boolean('active').notNull().default(true),", "active: boolean('active').notNull().default(false),\n  phone: text('phone'),");
change("weight: doublePrecision('weight'),", '');
change("stock: smallint('stock').notNull().default(0)", "stock: integer('stock').notNull().default(1)");
change("index('customer_name_idx').on(table.name.desc().nullsLast())", "index('customer_name_since_idx').on(table.name, table.since)");
change('> 0`', '>= 0`');
change("due: date('due'),", "due: date('due').notNull().default('2030-01-01'),");
process.stdout.write(text);
