/** The transport to an MCP server that is a program: JSON lines over stdin and stdout, under a guard process. */

import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { isObject, tryParse } from '../../../../lib/json/json.ts';
import { GUARD, ownProgram } from '../../../../lib/process/own-program.ts';
import type { GuardedProgram } from '../../../../lib/process/process-guard.ts';
import { MAX_MESSAGE_BYTES, MessageTooLarge } from './bounded-messages.ts';

/** A server that sends requests and does not read the answers is ended when so much waits for it. */
const MAX_UNREAD_BYTES = 32 * 1024 * 1024;
/** Milliseconds: longer than a guard takes to end its program. */
const EXIT_TIMEOUT_MS = 6000;
const NEWLINE = 0x0a;

export interface GuardedStdioOptions {
  readonly program: GuardedProgram;
  /** The guard's own environment: what every program gets, without secrets. */
  readonly guardEnv: Readonly<Record<string, string>>;
  /** Parses a message. @throws when it is not one */
  readonly read: (value: unknown) => JSONRPCMessage;
  /** Gets each line that the program writes on stderr, cut to 1,000 characters. */
  readonly onStderrLine: (line: string) => void;
}

export class GuardedStdio implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  #guard: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  /** The pieces of an unfinished line. */
  #pieces: Buffer[] = [];
  #size = 0;

  constructor(private readonly options: GuardedStdioOptions) {}

  /** @throws Error when the program cannot be started */
  start(): Promise<void> {
    const { program, guardEnv, onStderrLine } = this.options;
    const [command = '', ...args] = ownProgram(GUARD);
    const guard = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      // Its own process group: a signal to the gateway's group must not kill the guard before the server.
      detached: true,
      env: { ...guardEnv },
    });
    this.#guard = guard;
    const exited = Promise.withResolvers<void>();
    this.#exited = exited.promise;
    guard.on('close', () => {
      exited.resolve();
      this.onclose?.();
    });
    guard.stdin?.on('error', (error) => this.onerror?.(error));
    guard.stdout?.on('data', (chunk: Buffer) => this.#read(chunk));
    guard.stdout?.on('error', (error) => this.onerror?.(error));
    guard.stderr?.on('data', (chunk: Buffer) => {
      for (const line of new TextDecoder().decode(chunk).split('\n')) {
        if (line.trim() !== '') onStderrLine(line.slice(0, 1000));
      }
    });
    return new Promise((resolve, reject) => {
      guard.on('error', (error) => {
        exited.resolve();
        reject(error);
      });
      guard.on('exit', () => reject(new Error(`${program.command} did not start`)));
      const control = this.#control;
      control.on('error', () => {});
      control.on('data', (chunk: Buffer) => {
        const reply = tryParse(String(chunk));
        if (isObject(reply) && typeof reply.error === 'string') reject(new Error(reply.error));
        else resolve();
      });
      control.write(`${JSON.stringify(program)}\n`);
    });
  }

  get #control(): Duplex {
    return this.#guard!.stdio[3] as Duplex;
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#guard?.stdin;
    if (stdin === null || stdin === undefined || !stdin.writable) {
      return Promise.reject(new Error('Not connected'));
    }
    if (stdin.writableLength > MAX_UNREAD_BYTES) {
      void this.close();
      return Promise.reject(new Error('it does not read what it is sent'));
    }
    return new Promise((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Resolves when every process of the server has ended. */
  async close(): Promise<void> {
    const guard = this.#guard;
    if (guard === undefined) return;
    guard.stdin?.end();
    this.#control.end();
    const late = setTimeout(() => guard.kill('SIGKILL'), EXIT_TIMEOUT_MS);
    await this.#exited;
    clearTimeout(late);
    this.#pieces = [];
  }

  #read(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#pieces.push(chunk.subarray(from, end));
      from = end + 1;
      const line = Buffer.concat(this.#pieces).toString();
      this.#pieces = [];
      this.#size = 0;
      this.#message(line);
    }
    if (from === chunk.length) return;
    this.#pieces.push(chunk.subarray(from));
    this.#size += chunk.length - from;
    if (this.#size <= MAX_MESSAGE_BYTES) return;
    this.#pieces = [];
    this.#size = 0;
    this.onerror?.(new MessageTooLarge());
    void this.close();
  }

  #message(line: string): void {
    if (line.trim() === '') return;
    try {
      this.onmessage?.(this.options.read(JSON.parse(line)));
    } catch (thrown) {
      this.onerror?.(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  }
}
