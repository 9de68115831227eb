/** Options that the commands about recorded exchanges share. */

import { PROTOCOL_NAMES } from '../../../conversation/protocol-names.ts';
import type { OptionSpec } from '../../command.ts';

export const SAMPLES_DIR: OptionSpec = {
  value: 'DIR',
  summary: 'folder of the samples',
  default: 'samples.dir of the configuration, else $HOPGATE_HOME/samples',
};

export const TO: OptionSpec = {
  value: 'PROVIDER/MODEL',
  summary: 'the target',
};

export const STAGE: OptionSpec = {
  aliases: ['edge'],
  value: 'STAGE',
  summary: 'which request of the sample; one that was sent to a vendor is sent there unchanged',
  default: 'client-request',
};

export const YES: OptionSpec = {
  short: 'y',
  summary: 'do not ask before requests are sent',
};

export const NO_REPAIR: OptionSpec = {
  summary: 'send it through the gateway without any of its repairs',
};

export const BODY_PROTOCOL: OptionSpec = {
  value: 'NAME',
  summary: 'the protocol of a body in a file',
  choices: PROTOCOL_NAMES,
  default: 'guessed from the body',
};
