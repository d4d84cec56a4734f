import { Elysia, t } from "elysia";
import { newId } from "../../base/id.ts";
import {
	createTopUp,
	getTopUp,
	listTopUps,
	newReference,
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
				// The customer may be paying by card, so Stripe's payment page is closed first.
				if (topUp.method === "card") await parts.cards?.expire(topUp.id);
				const { amountNanoUsd, reference } = topUp;
				await rejectTopUp(statements, topUp.id, viewer.userId, noted("topup.cancel", { amountNanoUsd, reference }));
				return { topUp: topUpView(await topUpOfAccount(statements, accountId, params.id)) };
			},
			{ query, body: EMPTY_BODY },
		);
}

const PENDING_MAX = 20;

interface WantedTopUp {
	readonly amountNanoUsd: NanoUsd;
	readonly method: "transfer" | "card";
	readonly token: string | undefined;
}

/**
 * Creates a pending bank transfer with a reference of ours; a repeated token returns the pending one. Faults:
 * invalid_request, conflict.
 */
async function expectTopUp(
	parts: Parts<"statements" | "keyMaker" | "clock">,
	member: Allowed,
	wanted: WantedTopUp,
): Promise<TopUpRecord> {
	const { amountNanoUsd, method, token } = wanted;
	const { accountId } = member;
	// Bank transfers have whole cents.
	if (!isWholeCents(amountNanoUsd))
		throw new ConsoleError("invalid_request", "Amounts must be whole cents.", { param: "usd" });
	const expected = { accountId, amountNanoUsd, method, reference: newReference(), pendingMost: PENDING_MAX };
	const asked = { amountNanoUsd, method };
	const id = await claimedOnPage(parts, member, { fresh: newId("top"), token, asked });
	const act = member.noted("topup.create", { amountNanoUsd, reference: expected.reference });
	await createTopUp(parts.statements, expected, id, act);
	const topUp = await getTopUp(parts.statements, id);
	if (topUp.state === "pending") return topUp;
	return expectTopUp(parts, member, { ...wanted, token: hexOfId(id) });
}

const hexOfId = (id: string) => id.replace(/^.*_/, "");
