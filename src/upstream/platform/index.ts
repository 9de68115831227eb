/** The platform of a provider, loaded with its first request: signing and binary streams take memory that others spare. */

import type { ProviderConfig } from '../../config/sections/providers.ts';
import type { Transport, UpstreamAnswer } from '../transport.ts';
import type { Platform, PlatformRequest } from './platform.ts';

/** Undefined: the provider is the vendor itself. */
export function platformOf(config: ProviderConfig, transport: Transport): Platform | undefined {
  const { platform } = config;
  if (platform === undefined) return undefined;
  // With a key, requests are the vendor's own.
  if (platform.name === 'azure' && config.keys.length > 0) return undefined;
  return new LazyPlatform(async () => {
    if (platform.name === 'vertex') {
      const { Vertex } = await import('./vertex/index.ts');
      return new Vertex(config, platform, transport);
    }
    if (platform.name === 'azure') {
      const { Azure } = await import('./azure/index.ts');
      return new Azure(config, platform, transport);
    }
    const { Bedrock } = await import('./bedrock/index.ts');
    return new Bedrock(config, platform, transport);
  });
}

class LazyPlatform implements Platform {
  #loading: Promise<Platform> | undefined;

  constructor(private readonly load: () => Promise<Platform>) {}

  async send(request: PlatformRequest): Promise<UpstreamAnswer> {
    return (await this.#loaded()).send(request);
  }

  async authorize(): Promise<string> {
    return (await this.#loaded()).authorize();
  }

  #loaded(): Promise<Platform> {
    this.#loading ??= this.load();
    return this.#loading;
  }
}
