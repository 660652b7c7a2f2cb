// TypeORM's decorators need the types of what they decorate, which TypeScript's own compiler writes down. Types are not checked: that takes long.
const fs = require('fs');
const ts = require('typescript');

const compilerOptions = {
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  esModuleInterop: true,
  useDefineForClassFields: false,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.CommonJS,
};
const { outputText } = ts.transpileModule(fs.readFileSync('typeorm.ts', 'utf8'), { compilerOptions });
fs.writeFileSync('typeorm.js', outputText);
