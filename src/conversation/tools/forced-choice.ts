/** A tool choice for models that cannot be forced: the words that stand for it, and whether an answer meets it. */

import type { Block, ToolChoice } from '../types.ts';

/** The choice as an instruction behind the history. */
export function choiceInstruction(choice: ToolChoice): string {
  switch (choice.type) {
    case 'tool':
      return `Call the tool "${choice.name}" now. Do not answer in text.`;
    case 'allowed':
      return `Call one of these tools now: ${choice.names.join(', ')}. Do not answer in text.`;
    default:
      return 'Call one of the tools now. Do not answer in text.';
  }
}

/** Does an answer hold a call that the choice asks for? A hosted tool that the vendor has run is one, too. */
export function calledFor(choice: ToolChoice, blocks: readonly Block[]): boolean {
  return blocks.some((block) => {
    if (block.type !== 'tool-call') return false;
    switch (choice.type) {
      case 'tool':
        return choice.kind === 'hosted' || block.name === choice.name;
      case 'allowed':
        return choice.names.includes(block.name);
      default:
        return true;
    }
  });
}
