import { Elysia, t } from "elysia";
import { newId } from "../../base/id.ts";
import { newReference } from "../../billing/top-up-reference.ts";
import {
	createTopUp,
	getTopUp,
	listTopUps,
	payableByCard,
	rejectTopUp,
	type TopUpRecord,
} from "../../billing/top-ups.ts";
import { isWholeCents } from "../../money/cents.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { claimedOnPage, TOKEN } from "../claimed-on-page.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { Allowed } from "../console-session.ts";
import { ACCOUNT_QUERY, amountOf, EMPTY_BODY, PAGE_QUERY, pageOf, USD } from "../page-query.ts";
import { type OwnTopUpView, ownTopUpViews, type TopUpView, topUpOfAccount, topUpView } from "./credit.ts";

const query = t.Object(ACCOUNT_QUERY);
const amount = t.Object({ usd: USD, token: TOKEN });

/** Money into the visited account, by transfer or by card. */
export function topUpRoutes(
	parts: Parts<"statements" | "clock" | "config" | "keyMaker" | "cards" | "sessions" | "origin">,
) {
	const { statements, sessions } = parts;

	return new Elysia({ name: "console-top-ups" })
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.get(
			"/top-ups",
			async ({ member: { accountId }, query }): Promise<{ items: OwnTopUpView[]; next: string | null }> => {
				const { shown, after } = pageOf(query);
				const page = await listTopUps(statements, { accountId }, { limit: shown, after });
				return { items: await ownTopUpViews(statements, page.items), next: page.next };
			},
			{ query: t.Object(PAGE_QUERY) },
		)
		.post(
			"/top-ups/transfer",
			async ({ member, body }): Promise<{ topUp: TopUpView; transferDetails: string | null }> => {
				const { usd, token } = body;
				const topUp = await expectTopUp(parts, member, {
					amountNanoUsd: amountOf(usd, "usd"),
					method: "transfer",
					token,
				});
				return { topUp: topUpView(topUp), transferDetails: parts.config.transferDetails };
			},
			{ query, body: amount },
		)
		.post(
			"/top-ups/card",
			async ({ member, body }): Promise<{ topUp: TopUpView; url: string }> => {
				if (!parts.cards)
					throw new ConsoleError("service_unavailable", "Card payments are not set up. Use a bank transfer.");
				const amountNanoUsd = payableByCard(amountOf(body.usd, "usd"), "usd");
				const topUp = await expectTopUp(parts, member, { amountNanoUsd, method: "card", token: body.token });
				const back = `${parts.origin()}/credit?topup=${topUp.id}&payment=`;
				const url = await parts.cards.checkout(topUp, { email: member.viewer.email, back });
				return { topUp: topUpView(topUp), url };
			},
			{ query, body: amount },
		)
		.post(
			"/top-ups/:id/cancel",
			async ({ member: { accountId, viewer, noted }, params }): Promise<{ topUp: TopUpView }> => {
				const topUp = await topUpOfAccount(statements, accountId, params.id);
				if (topUp.state !== "pending")
					throw new ConsoleError("conflict", "The top-up is {state}: it cannot be cancelled.", {
						values: { state: topUp.state },
					});
				// A card may be charged at this very moment, so the page where it is paid is closed first.
				if (topUp.method === "card") await parts.cards?.expire(topUp.id);
				const { amountNanoUsd, reference } = topUp;
				await rejectTopUp(statements, topUp.id, viewer.userId, noted("topup.cancel", { amountNanoUsd, reference }));
				return { topUp: topUpView(await topUpOfAccount(statements, accountId, params.id)) };
			},
			{ query, body: EMPTY_BODY },
		);
}

/** Payments that are expected at once, for one account. */
const PENDING_MAX = 20;

interface WantedTopUp {
	readonly amountNanoUsd: NanoUsd;
	readonly method: "transfer" | "card";
	readonly token: string | undefined;
}

/**
 * Writes down a payment that is expected, with a reference of ours; asked for again with the same token it is the one that
 * waits. Faults: invalid_request, conflict.
 */
async function expectTopUp(
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
