/** Asks questions on the terminal, in plain lines, so that they work over any connection. */

import { createInterface } from 'node:readline';
import type { Io } from './command.ts';
import type { Terminal } from './terminal.ts';

/** The input ended (Ctrl-D, Ctrl-C, a closed pipe) before an answer came. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

export interface Questions {
  /** The answer without spaces around it; `standard` when it is empty. @throws Cancelled */
  ask(question: string, standard?: string): Promise<string>;
  /** Yes or no. @throws Cancelled */
  confirm(question: string, standard: boolean): Promise<boolean>;
  close(): void;
}

/** Asks on stderr, so that stdout stays clean for what a command gives out. */
export function openQuestions(io: Io, err: Terminal): Questions {
  const lines = createInterface({ input: io.stdin, terminal: false });
  const answers = lines[Symbol.asyncIterator]();
  const ask = async (question: string, standard = ''): Promise<string> => {
    const shown = standard === '' ? '' : ` ${err.paint('dim', `[${standard}]`)}`;
    io.stderr.write(`${err.paint('bold', question)}${shown} `);
    const { done, value } = await answers.next();
    if (done === true) {
      io.stderr.write('\n');
      throw new Cancelled('cancelled');
    }
    return value.trim() || standard;
  };
  return {
    ask,
    async confirm(question, standard) {
      for (;;) {
        const answer = (await ask(question, standard ? 'Y/n' : 'y/N')).toLowerCase();
        if (answer === 'y' || answer === 'yes') return true;
        if (answer === 'n' || answer === 'no') return false;
        if (answer === 'y/n') return standard;
      }
    },
    close: () => lines.close(),
  };
}
