/** Options that the commands about recorded exchanges share. */

import { PROTOCOL_NAMES } from '../../../conversation/protocol-names.ts';
import type { OptionSpec } from '../../command.ts';

export const SAMPLES_DIR: OptionSpec = {
  name: 'dir',
  value: 'DIR',
  summary: 'folder of the samples',
  default: 'samples.dir of the configuration, else $HOPGATE_HOME/samples',
};

export const TO: OptionSpec = {
  name: 'to',
  value: 'PROVIDER/MODEL',
  summary: 'the target',
};

export const STAGE: OptionSpec = {
  name: 'stage',
  aliases: ['edge'],
  value: 'STAGE',
  summary: 'which request of the sample; one that was sent to a vendor is sent there unchanged',
  default: 'client-request',
};

export const YES: OptionSpec = {
  name: 'yes',
  short: 'y',
  summary: 'do not ask before requests are sent',
};

export const NO_REPAIR: OptionSpec = {
  name: 'no-repair',
  summary: 'send it through the gateway without any of its repairs',
};

export const BODY_PROTOCOL: OptionSpec = {
  name: 'protocol',
  value: 'NAME',
  summary: 'the protocol of a body in a file',
  choices: PROTOCOL_NAMES,
  default: 'guessed from the body',
};
