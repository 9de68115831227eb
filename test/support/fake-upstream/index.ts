/** A fake vendor for tests: four protocols, strict checks, scripted answers and faults, a record of every request. */

export * from './answer.ts';
export { toolNames, toolResults } from './reading.ts';
export { contextOverflow } from './refusal.ts';
export { signatureFor } from './seals.ts';
export { type FakeUpstream, startFakeUpstream } from './server.ts';
