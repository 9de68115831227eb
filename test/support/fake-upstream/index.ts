/** A fake vendor for tests: three protocols, strict checks, scripted answers and faults, a record of everything. */

export * from './answer.ts';
export { toolNames, toolResults } from './reading.ts';
export { contextOverflow, errorBody, Refusal } from './refusal.ts';
export { encryptedFor, signatureFor } from './seals.ts';
export { type FakeUpstream, type Options, type Received, startFakeUpstream } from './server.ts';
