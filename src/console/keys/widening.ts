import type { KeyRecord } from "../../keys/key-admin.ts";
import type { KeySettings } from "../../keys/key-settings.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { ZERO_USD } from "../../money/nano-usd.ts";

/**
 * What a key, or a project's keys, may spend more than before. A cap that begins anew has no end, so it is none for this
 * purpose, unless it became lower; null `before`: a new key.
 */
export function wideningOf(
	before: Pick<KeyRecord, "capNanoUsd" | "capPeriod"> | null,
	{
		capNanoUsd = before?.capNanoUsd ?? null,
		capPeriod = before?.capPeriod ?? "lifetime",
	}: Pick<KeySettings, "capNanoUsd" | "capPeriod">,
): { before: NanoUsd | null; cap: NanoUsd | null } {
	const from = before === null ? ZERO_USD : before.capNanoUsd;
	if (capPeriod === "lifetime") return { before: from, cap: capNanoUsd };
	const isLower = before?.capPeriod === capPeriod && from !== null && capNanoUsd !== null && capNanoUsd <= from;
	return { before: from, cap: isLower ? capNanoUsd : null };
}
