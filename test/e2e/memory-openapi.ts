/** Compares responses with an OpenAPI document: the path, the status, the content type and the schema. */

import { isObject, type Json, type JsonObject } from '../../src/lib/json/json.ts';

export interface OpenApi {
  /** Differences between a response and the document. @param path with its query */
  faults(
    method: string,
    path: string,
    answer: { readonly status: number; readonly headers: Headers; readonly text: string },
  ): readonly string[];
}

const at = (value: Json | undefined, ...path: string[]): Json | undefined =>
  path.reduce<Json | undefined>((part, key) => (isObject(part) ? part[key] : undefined), value);

export function described(document: JsonObject): OpenApi {
  const paths = Object.keys(document.paths as JsonObject);
  const find = (path: string) => {
    const parts = path.replace(/\?.*$/, '').split('/');
    return paths.find((pattern) => {
      const own = pattern.split('/');
      return (
        own.length === parts.length &&
        own.every((part, i) => part.startsWith('{') || part === parts[i])
      );
    });
  };
  return {
    faults(method, path, { status, headers, text }) {
      const pattern = find(path);
      if (pattern === undefined) return [`${path} is not described`];
      const content = at(
        document.paths,
        pattern,
        method.toLowerCase(),
        'responses',
        `${status}`,
        'content',
      );
      if (content === undefined) return [`${method} ${pattern} does not know ${status}: ${text}`];
      const type = (headers.get('content-type') ?? '').replace(/;.*/, '');
      const schema = at(content, type, 'schema');
      if (!isObject(schema)) return [`${method} ${pattern} ${status} does not know ${type}`];
      const lines =
        type === 'application/json' ? [text] : text.split('\n').filter((line) => line !== '');
      const line: JsonObject =
        type === 'application/json' ? schema : { $ref: '#/components/schemas/Event' };
      return lines.flatMap((one) => mismatches(document, line, JSON.parse(one) as Json, ''));
    },
  };
}

/** JSON Schema as far as the document uses it; an unknown keyword is a fault, too. */
function mismatches(root: JsonObject, schema: JsonObject, value: Json, path: string): string[] {
  const found: string[] = [];
  const say = (what: string) => found.push(`${path || '/'}: ${what}`);
  const inner = (part: Json | undefined, child: Json, key: string | number) => {
    if (isObject(part)) found.push(...mismatches(root, part, child, `${path}/${key}`));
  };
  for (const [keyword, rule] of Object.entries(schema)) {
    switch (keyword) {
      case '$ref': {
        const target = at(root, ...String(rule).slice(2).split('/'));
        if (isObject(target)) found.push(...mismatches(root, target, value, path));
        else say(`no ${rule}`);
        break;
      }
      case 'anyOf':
      case 'oneOf': {
        const fits = (rule as JsonObject[]).filter(
          (one) => mismatches(root, one, value, path).length === 0,
        );
        if (fits.length === 0 || (keyword === 'oneOf' && fits.length > 1))
          say(`fits ${fits.length} of ${keyword}`);
        break;
      }
      case 'type':
        if (!typed(String(rule), value)) say(`is no ${rule}`);
        break;
      case 'const':
        if (value !== rule) say(`is not ${rule}`);
        break;
      case 'pattern':
        if (typeof value === 'string' && !new RegExp(String(rule), 'u').test(value))
          say(`does not fit ${rule}`);
        break;
      case 'minimum':
        if (typeof value === 'number' && value < Number(rule)) say(`below ${rule}`);
        break;
      case 'maximum':
        if (typeof value === 'number' && value > Number(rule)) say(`above ${rule}`);
        break;
      case 'minLength':
        if (typeof value === 'string' && value.length < Number(rule)) say('too short');
        break;
      case 'required':
        for (const key of rule as string[])
          if (isObject(value) && !(key in value)) say(`has no ${key}`);
        break;
      case 'properties':
        if (isObject(value)) {
          for (const [key, child] of Object.entries(value))
            inner((rule as JsonObject)[key], child!, key);
        }
        break;
      case 'additionalProperties':
        if (rule === false && isObject(value)) {
          for (const key of Object.keys(value))
            if (!(key in (schema.properties as JsonObject))) say(`unknown ${key}`);
        }
        break;
      case 'items':
        if (Array.isArray(value)) {
          for (const [i, child] of value.entries()) inner(rule, child as Json, i);
        }
        break;
      case 'description':
      case 'default':
        break;
      default:
        say(`the keyword ${keyword} is not checked here`);
    }
  }
  return found;
}

function typed(type: string, value: Json): boolean {
  switch (type) {
    case 'object':
      return isObject(value);
    case 'array':
      return Array.isArray(value);
    case 'null':
      return value === null;
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}
