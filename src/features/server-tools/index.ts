/** Server tools: functions that models call and this gateway runs, with what the wiring needs of them. */

export { HOPS, type HopEntry, type HopLedger, TURNS } from './hop-ledger.ts';
export { checkHostedTools, checkTool, permittedTools } from './permitted-tools.ts';
export { liveRegistry, type ToolRegistry, toolRegistry } from './registry.ts';
export { mayDeclareHosted, type ServerToolsFeature, serverTools } from './server-tools.ts';
