// node-postgres reads and writes values of an enum and of its arrays, prepared and not.
const assert = require('assert')
const { Client } = require('pg')

async function main() {
  const client = new Client()
  await client.connect()
  const one = await client.query('SELECT now, was FROM ut_person WHERE now = $1', ['happy'])
  assert.deepStrictEqual(one.rows, [{ now: 'happy', was: '{sad,ok}' }])
  for (let i = 0; i < 2; i++) {
    const found = await client.query({ name: 'by mood', text: 'SELECT id FROM ut_person WHERE now > $1 ORDER BY now', values: ['sad'] })
    assert.deepStrictEqual(found.rows.map(r => r.id), [4, 3, 1])
  }
  await assert.rejects(client.query('SELECT id FROM ut_person WHERE now = $1', ['angry']), { code: '22P02' })
  await client.end()
  console.log('node-postgres: ok')
}

main().catch(error => { console.error(error); process.exit(1) })
