import type { KeyRecord } from "../../keys/key-admin.ts";
import type { KeySettings } from "../../keys/key-settings.ts";
import { type NanoUsd, ZERO_USD } from "../../money/nano-usd.ts";

/**
 * How much more a key, or a project's keys, may spend than before. A recurring cap has no total, so it counts as none,
 * unless it was lowered. `before` null: a new key.
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
