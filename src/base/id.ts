import { assert } from "./assert.ts";

/** A sortable id: `prefix_` and the 32 hex digits of a UUIDv7. */
export const newId = (prefix: string): string => `${prefix}_${newUuid().replaceAll("-", "")}`;

/** A UUIDv7 in its usual form with dashes. */
export const newUuid = (): string => Bun.randomUUIDv7();

/** The public forms of a request's id, made from `uuid` or a new UUID. */
export function newRequestId(uuid = newUuid()): { uuid: string; requestId: string; hex: string } {
	const hex = uuidHex(uuid);
	return { uuid, requestId: formatRequestId(hex), hex };
}

export const uuidHex = (uuid: string): string => uuid.replaceAll("-", "");

export const formatRequestId = (hex: string): string => `req_${hex}`;

function uuidOfHex(hex: string): string {
	assert(hex.length === 32, "a UUID has 32 hex digits");
	return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The UUID in a public id (`req_…`, `chatcmpl-…`); undefined if the text contains none. */
export function uuidFromId(id: string): string | undefined {
	const hex = /([0-9a-f]{32})$/.exec(id.toLowerCase().replaceAll("-", ""))?.[1];
	if (hex === undefined) return undefined;
	return uuidOfHex(hex);
}
