// A program is a row of steps: each prints its name and what came of it, a value or an error with its fields, in one line.
// The suite compares the lines with those that were written against PostgreSQL 15.
const url = process.env.SUITE_URL;

/** What differs from run to run, by a word for it: UUIDs, times of this century, OIDs in the names of NOT NULL constraints. */
function steady(text) {
  return text
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID')
    .replace(/20[2-9]\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+00|Z)?/g, 'TIME')
    .replace(/2200_\d+_/g, '2200_N_');
}

function shown(value) {
  if (value?.command && value?._types) value = { command: value.command };
  return JSON.stringify(value, (_, x) => {
    if (typeof x === 'bigint') return `${x}n`;
    if (x instanceof RegExp) return String(x);
    return typeof x === 'string' ? steady(x) : x;
  });
}

const FIELDS = ['code', 'message', 'severity', 'detail', 'hint', 'schema', 'table', 'column', 'dataType', 'constraint', 'position'];

/** The server's error inside of whatever the library made of it. */
function errorFields(error) {
  const inner = error?.original ?? error?.driverError ?? error?.cause ?? error?.nativeError ?? error;
  const fields = { as: error?.name };
  for (const name of [...FIELDS, 'schema_name', 'table_name', 'column_name', 'constraint_name']) {
    if (inner[name] !== undefined) fields[name] = inner[name];
  }
  // Prisma tells where in the program it was called, in lines before its last one.
  if (fields.message?.includes('invocation in')) fields.message = fields.message.trim().split('\n').pop();
  return fields;
}

async function step(name, work) {
  try {
    const value = await work();
    console.log(`OK ${name}\t${value === undefined ? '' : shown(value)}`);
    return value;
  } catch (error) {
    console.log(`ERR ${name}\t${shown(errorFields(error))}`);
  }
}

module.exports = { url, step, U: url };
