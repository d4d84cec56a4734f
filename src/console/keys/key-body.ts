import { t } from "elysia";
import { CAP_PERIODS } from "../../keys/cap-period.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { parseAmount, USD } from "../page-query.ts";

/** Limits of a key or project in a request body. An absent field keeps its value; null removes the limit. */
export const LIMITS = {
	capUsd: t.Optional(t.Nullable(USD)),
	capPeriod: t.Optional(t.UnionEnum(CAP_PERIODS)),
	models: t.Optional(t.Nullable(t.Array(t.String({ maxLength: 200 }), { maxItems: 200 }))),
	requestsPerMinute: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	concurrencyMax: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	tokensPerMinute: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
};
export const KEY_SETTINGS = {
	...LIMITS,
	expiresAtMs: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	projectId: t.Optional(t.Nullable(t.String({ maxLength: 64 }))),
};
export const NAME = t.String({ minLength: 1, maxLength: 100 });

export function parseKeyBody<Body extends { capUsd?: string | null }>(
	body: Body,
): Omit<Body, "capUsd"> & { capNanoUsd?: NanoUsd | null } {
	const { capUsd, ...rest } = body;
	if (capUsd === undefined) return rest;
	return { ...rest, capNanoUsd: capUsd === null ? null : parseAmount(capUsd, "capUsd") };
}
