/** The input of a feature factory: the services of the process, and the exchange. */

import type { Environment } from '../config/environment.ts';
import type { Payer } from '../conversation/account/payer.ts';
import type { Reply } from '../conversation/events.ts';
import type { Memory } from '../conversation/memory.ts';
import type { Conversation } from '../conversation/types.ts';
import type { ConversationParts } from '../features/chat-apps/index.ts';
import type { ToolRegistry } from '../features/server-tools/index.ts';
import type { ClientRequest } from '../gateway/client-request.ts';
import type { Exchange } from '../gateway/types.ts';
import type { Recording } from '../samples/recording.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import type { Log } from '../telemetry/log.ts';
import type { ExchangeLedgers, Ledgers } from './ledgers.ts';

/** Asks a model (`provider/model`) through this gateway, on the account of `payer`. */
export type AskModel = (
  target: string,
  conversation: Conversation,
  signal: AbortSignal,
  payer: Payer | undefined,
) => Promise<Reply>;

export interface FeaturesOptions {
  readonly environment: Environment;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  readonly version: string;
  readonly ask: AskModel;
  readonly ledgers: Ledgers;
  /** Undefined while `memory.enabled` is off. Read it again for each exchange: a reload changes it. */
  readonly memory: Memory | undefined;
}

/** What a feature may look at when it is made for one exchange. */
export interface ExchangeSetup {
  readonly exchange: Exchange;
  readonly request: ClientRequest;
  readonly recording: Recording | undefined;
  /** The parts of a chat app's conversation; undefined for other clients. */
  readonly chat: ConversationParts | undefined;
  /** The server tools, those of the chat app first. */
  readonly registry: ToolRegistry;
  /** On whose account calls to other models go. */
  readonly payer: Payer | undefined;
  readonly ledgers: ExchangeLedgers;
}
