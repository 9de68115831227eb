/** The part of a configuration that names one vendor with one model, which a benchmark serves itself. */

export const oneVendor = (port: number) => ({
  vendor: {
    protocol: 'openai-chat',
    base_url: `http://127.0.0.1:${port}/v1`,
    keys: ['sk-upstream'],
    models: ['m1'],
    prices: { m1: { input: 1, output: 1 } },
  },
});
