/** Server tools: functions that models call and this gateway runs, with what the wiring needs of them. */

export { type HopEntry, type HopLedger, memoryLedger, openHopLedger } from './hop-ledger.ts';
export { liveRegistry } from './live-registry.ts';
export { type ToolRegistry, toolRegistry } from './registry.ts';
export { mayDeclareHosted, serverTools } from './server-tools.ts';
