/** 100 replicas with 10,000 streams each on one budget, without servers: `bun bench/replicas/simulation.ts [REPLICAS STREAMS]`. */

import { COSTS } from '../../test/support/simulation/costs.ts';
import { simulate } from '../../test/support/simulation/replicas.ts';
import { percentile } from '../statistics.ts';

const [replicas = 100, streamsOfEach = 10_000] = process.argv.slice(2).map(Number);
const percent = (part: number) => `${(part * 100).toFixed(2)} %`;

for (const part of [0.6, 10]) {
  for (const [name, costs] of Object.entries(COSTS)) {
    const began = performance.now();
    const all = await simulate({
      replicas,
      streamsOfEach,
      costs,
      part,
      per: 'month',
      seed: 1,
      kills: part < 1 ? 10 : 0,
      lost: part < 1 ? 0.001 : 0,
    });
    console.log(`${name}; budget ${part} × what all streams would cost`);
    console.log(
      `  overshoot ${Math.max(0, all.overshoot)} (nearest ${all.overshoot}), of true cost ${Math.max(0, all.trueOvershoot)}; held at the end ${all.held}, lost ${all.uncounted}`,
    );
    console.log(
      `  admitted ${all.admitted}, refused ${all.refused}; spent ${percent(all.spentPart)}, unused at the first refusal ${all.unusedAtRefusal === undefined ? '–' : percent(all.unusedAtRefusal)}`,
    );
    console.log(
      `  waited for the bank ${all.waited} (p50 ${percentile(all.waits, 0.5).toFixed(1)} ms, p99 ${percentile(all.waits, 0.99).toFixed(1)} ms); draws ${all.draws}, ${Math.round(all.drawsASecond)}/s, busiest second ${all.mostDraws}`,
    );
    console.log(`  computed in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }
}
