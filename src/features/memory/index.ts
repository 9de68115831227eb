/** The memory: events stored by space and recalled by relevance, in this process or in another service. */

export type { MemoryBackend, MemoryObserver } from './backend.ts';
export { externalMemory } from './external-memory.ts';
export { forgetEvents } from './forget.ts';
export { withinTokens } from './ranking/passages.ts';
export { type Embedder, embedder } from './store/embedder.ts';
export { databaseMemory, embeddedMemory } from './store/own-memory.ts';
