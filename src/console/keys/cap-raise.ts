import type { KeyRecord } from "../../keys/key-admin.ts";
import type { KeySettings } from "../../keys/key-settings.ts";
import {
	centsRoundedDown,
	centsRoundedUp,
	NANO_PER_USD,
	type NanoUsd,
	nanoUsd,
	subUsd,
	ZERO_USD,
} from "../../money/nano-usd.ts";
import type { Parts } from "../console-deps.ts";
import { countWithin, subtractCount } from "../rate-counter.ts";

type Capped = Pick<KeyRecord, "capNanoUsd" | "capPeriod">;
type Change = Pick<KeySettings, "capNanoUsd" | "capPeriod">;

/** Spending that a session may permit per day, by new keys or higher caps, without entering the password again. */
const UNASKED_NANO_USD = nanoUsd(100 * NANO_PER_USD);
const UNASKED_WINDOW_MS = 24 * 3_600_000;

/**
 * Limits how much more a key, or the keys of a project, may spend than `before` (null: a new key). Counts the raise
 * before it happens, so that concurrent requests stay within the limit. Fault `reauthentication_required`.
 */
export async function checkCapRaise(
	{ statements, sessions }: Parts<"statements" | "sessions">,
	request: Request,
	before: Capped | null,
	change: Change,
): Promise<void> {
	const isKept = before !== null && change.capNanoUsd === undefined && change.capPeriod === undefined;
	if (isKept || sessions.isAuthenticatedLately(request)) return;
	const { from, cap } = capRaise(before, change);
	if (from === null || (cap !== null && cap <= from)) return;
	if (cap === null || cap > UNASKED_NANO_USD) throw sessions.passwordWanted();
	const { viewer, accountId } = sessions.account(request);
	const subject = `${viewer.userId} ${accountId}`;
	const cents = centsRoundedUp(subUsd(cap, from));
	const { count } = await countWithin(statements, "cents unasked", subject, UNASKED_WINDOW_MS, cents);
	if (count <= centsRoundedDown(UNASKED_NANO_USD)) return;
	await subtractCount(statements, "cents unasked", subject, cents);
	throw sessions.passwordWanted();
}

/** Allowed totals before and after; null: unlimited. A renewing cap counts as unlimited, unless it is lowered. */
function capRaise(
	before: Capped | null,
	{ capNanoUsd = before?.capNanoUsd ?? null, capPeriod = before?.capPeriod ?? "lifetime" }: Change,
): { from: NanoUsd | null; cap: NanoUsd | null } {
	const from = before === null ? ZERO_USD : before.capNanoUsd;
	if (capPeriod === "lifetime") return { from, cap: capNanoUsd };
	const isLower = before?.capPeriod === capPeriod && from !== null && capNanoUsd !== null && capNanoUsd <= from;
	return { from, cap: isLower ? capNanoUsd : null };
}
