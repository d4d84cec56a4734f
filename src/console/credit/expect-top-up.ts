import { newId } from "../../base/id.ts";
import { newReference } from "../../billing/top-up-reference.ts";
import { createTopUp, getTopUp, type TopUpRecord } from "../../billing/top-ups.ts";
import { isWholeCents } from "../../money/cents.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { claimedOnPage } from "../claimed-on-page.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { Allowed } from "../visit.ts";

/** Payments that are expected at once, for one account. */
const PENDING_MAX = 20;

export interface WantedTopUp {
	readonly amountNanoUsd: NanoUsd;
	readonly method: "transfer" | "card";
	readonly token: string | undefined;
}

/**
 * Writes down a payment that is expected, with a reference of ours; asked for again with the same token it is the one that
 * waits. Faults: invalid_request, conflict.
 */
export async function expectTopUp(
	parts: Parts<"statements" | "keyMaker" | "clock">,
	member: Allowed,
	wanted: WantedTopUp,
): Promise<TopUpRecord> {
	const { amountNanoUsd, method, token } = wanted;
	const { accountId } = member;
	// No bank pays less than a cent: what is asked for must be what can come.
	if (!isWholeCents(amountNanoUsd))
		throw new ConsoleError("invalid_request", "A transfer is a whole number of cents.", { param: "usd" });
	const expected = { accountId, amountNanoUsd, method, reference: newReference(), pendingMost: PENDING_MAX };
	const asked = { amountNanoUsd, method };
	const id = await claimedOnPage(parts, member, { fresh: newId("top"), token, asked });
	const act = member.noted("topup.create", { amountNanoUsd, reference: expected.reference });
	await createTopUp(parts.statements, expected, id, act);
	const topUp = await getTopUp(parts.statements, id);
	if (topUp.state === "pending") return topUp;
	// What was cancelled or paid meanwhile is over: who asks for as much again wants another one, and that once, too.
	return expectTopUp(parts, member, { ...wanted, token: hexOfId(id) });
}

const hexOfId = (id: string) => id.replace(/^.*_/, "");
