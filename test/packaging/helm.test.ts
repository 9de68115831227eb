/** The Helm chart: what it renders is valid for Kubernetes, and its configuration is one that the program takes. */

import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { program } from '../support/engines/processes.ts';

const CHART = join(import.meta.dir, '../../deploy/helm/hopgate');
const HELM = process.env.HOPGATE_HELM ?? program('helm');
const VALIDATE = process.env.HOPGATE_KUBERNETES_VALIDATE ?? program('kubernetes-validate');
const KUBERNETES = '1.31';
const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));

const EVERYTHING = [
  'ingress.enabled=true',
  'ingress.className=nginx',
  'ingress.tlsSecret=llm-tls',
  'monitoring.enabled=true',
  'autoscaling.enabled=true',
  'state.storageClass=fast',
  'imagePullSecrets[0].name=pull',
  'podLabels.team=web',
  'nodeSelector.pool=llm',
];

function helm(command: 'lint' | 'template', set: readonly string[] = []) {
  const name = command === 'template' ? ['llm'] : [];
  const words = [HELM!, command, ...name, CHART, '--kube-version', `${KUBERNETES}.0`];
  const ran = Bun.spawnSync([...words, ...set.flatMap((one) => ['--set', one])]);
  return { code: ran.exitCode, out: ran.stdout.toString(), err: ran.stderr.toString() };
}
const rendered = (set: readonly string[] = []) => {
  const { code, out, err } = helm('template', set);
  expect([code, err]).toEqual([0, '']);
  return parseAllDocuments(out)
    .map((document) => document.toJS())
    .filter((one) => one !== null);
};
const one = (kind: string, set: readonly string[] = []) => {
  const found = rendered(set).find((each) => each.kind === kind);
  if (found === undefined) throw new Error(`no ${kind}`);
  return found;
};

test('the chart has the version of the program', () => {
  const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  const { version } = JSON.parse(readFileSync(join(CHART, '../../../package.json'), 'utf8'));
  expect([chart.version, chart.appVersion]).toEqual([version, version]);
});

test('its values trust no proxy: whoever is named can write any address of a client', () => {
  expect(values.config.listen.trusted_proxies).toEqual([]);
});

test('the configuration of its values loads with the variables that they name', () => {
  const text = JSON.stringify(values.config);
  const names = [...text.matchAll(/\$\{([A-Z_]+)\}/g)].map(([, name]) => name!);
  const variables = Object.fromEntries(
    names.map((name) => [name, `${name}-0123456789abcdef-0123456789`]),
  );
  const environment = environmentFrom({ HOME: '/', ANTHROPIC_API_KEY: 'sk-one', ...variables });
  const loaded = parseConfig(text, '/etc/hopgate/hopgate.yaml', environment);
  expect(loaded.ok ? 'ok' : JSON.stringify(loaded)).toBe('ok');
});

const SKIPPED = HELM === undefined ? ' [SKIPPED: no helm on this machine]' : '';
describe.skipIf(HELM === undefined)(`helm${SKIPPED}`, () => {
  test('lint finds nothing', () => {
    const { code, out } = helm('lint');
    expect([code, out]).toEqual([0, expect.not.stringMatching(/\[(?:WARNING|ERROR)\]/)]);
  });

  test.each([
    ['as it is', []],
    ['with everything', EVERYTHING],
  ])('%s: the configuration that is mounted is that of the values', (_, set) => {
    const { data } = one('ConfigMap', set);
    expect(parse(data['hopgate.yaml'])).toEqual(values.config);
  });

  test('a pod is given the time that its streams may take', () => {
    const { spec } = one('StatefulSet', ['config.limits.drain=900', 'config.limits.drain_delay=7']);
    expect(spec.template.spec.terminationGracePeriodSeconds).toBe(937);
  });

  test('another configuration, and another secret, are other pods', () => {
    const annotations = (set: readonly string[]) =>
      one('StatefulSet', set).spec.template.metadata.annotations;
    const plain = annotations([]);
    expect(annotations(['config.limits.drain=900'])['checksum/config']).not.toBe(
      plain['checksum/config'],
    );
    expect(annotations(['secret.values.A=b'])['checksum/secret']).not.toBe(
      plain['checksum/secret'],
    );
  });

  test('a secret of one’s own: none is made, and pods take that one', () => {
    const all = rendered(['secret.existing=own']);
    expect(all.map(({ kind }) => kind)).not.toContain('Secret');
    const { spec } = one('StatefulSet', ['secret.existing=own']);
    expect(spec.template.spec.containers[0].envFrom).toEqual([{ secretRef: { name: 'own' } }]);
  });

  test('several replicas without engines are refused, with the reason', () => {
    const { code, err } = helm('template', ['config.engines=null']);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining('more than one replica need config.engines'),
    ]);
    expect(helm('template', ['config.engines=null', 'replicas=1']).code).toBe(0);
  });

  test('a value that the chart does not know is refused by name', () => {
    const { code, err } = helm('template', ['replica=2']);
    expect([code, err]).toEqual([1, expect.stringContaining('replica')]);
  });

  const without =
    VALIDATE === undefined ? ' [SKIPPED: no kubernetes-validate on this machine]' : '';
  test.skipIf(VALIDATE === undefined).each([
    ['as it is', []],
    ['with everything', EVERYTHING],
  ])(
    `%s: every resource is valid by the schemas of Kubernetes ${KUBERNETES}${without}`,
    (_, set) => {
      const { out } = helm('template', set);
      const checked = Bun.spawnSync([VALIDATE!, '--strict', '-k', KUBERNETES, '/dev/stdin'], {
        stdin: Buffer.from(out),
      });
      const words = `${checked.stdout}${checked.stderr}`;
      const kinds = parseAllDocuments(out).length;
      // That of the Prometheus operator is no resource of Kubernetes.
      const foreign = set.length > 0 ? 1 : 0;
      expect([checked.exitCode, words.match(/ passed for resource /g)?.length]).toEqual([
        0,
        kinds - foreign,
      ]);
    },
  );
});
