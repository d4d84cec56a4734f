import { t } from "elysia";
import { newId } from "../../base/id.ts";
import {
	checkCardAmount,
	createTopUp,
	getTopUp,
	listTopUps,
	newPaymentReference,
	rejectTopUp,
	type TopUpRecord,
} from "../../billing/top-ups.ts";
import { isWholeCents, type NanoUsd } from "../../money/nano-usd.ts";
import { accountRoutes, PAGE_QUERY, type Parts, parseAmount, USD_FIELD } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { PermittedMember } from "../console-session.ts";
import { claimIdOnPage, TOKEN_FIELD } from "../page-claim.ts";
import { ownTopUpViews, topUpOfAccount, topUpView } from "./credit.ts";

export function topUpRoutes(
	parts: Parts<"statements" | "clock" | "config" | "keyMaker" | "cards" | "sessions" | "origin">,
) {
	const { statements } = parts;

	return accountRoutes(parts, "console-top-ups")
		.post("/top-ups/:id/cancel", async ({ member: { accountId, viewer, noted }, params }) => {
			const topUp = await topUpOfAccount(statements, accountId, params.id);
			if (topUp.state !== "pending")
				throw new ConsoleError("conflict", "The top-up is {state}: it cannot be cancelled.", {
					values: { state: topUp.state },
				});
			// Expires Stripe's payment page before the top-up is cancelled: otherwise the customer could still pay on it.
			if (topUp.method === "card") await parts.cards?.expire(topUp.id);
			const { amountNanoUsd, reference } = topUp;
			await rejectTopUp(statements, topUp.id, viewer.userId, noted("topup.cancel", { amountNanoUsd, reference }));
			return { topUp: topUpView(await topUpOfAccount(statements, accountId, params.id)) };
		})
		.get(
			"/top-ups",
			async ({ member: { accountId }, query }) => {
				const { items, next } = await listTopUps(statements, { accountId }, query);
				return { items: await ownTopUpViews(statements, items), next };
			},
			{ query: t.Object(PAGE_QUERY) },
		)
		.guard({ schema: "standalone", body: t.Object({ usd: USD_FIELD, token: TOKEN_FIELD }) })
		.post("/top-ups/transfer", async ({ member, body: { usd, token } }) => {
			const asked = { amountNanoUsd: parseAmount(usd, "usd"), method: "transfer", token } as const;
			const topUp = await expectTopUp(parts, member, asked);
			return { topUp: topUpView(topUp), transferDetails: parts.config.transferDetails };
		})
		.post("/top-ups/card", async ({ member, body: { usd, token } }) => {
			if (!parts.cards)
				throw new ConsoleError("service_unavailable", "Card payments are not set up. Use a bank transfer.");
			const amountNanoUsd = checkCardAmount(parseAmount(usd, "usd"), "usd");
			const topUp = await expectTopUp(parts, member, { amountNanoUsd, method: "card", token });
			const back = `${parts.origin()}/credit?topup=${topUp.id}&payment=`;
			return { topUp: topUpView(topUp), url: await parts.cards.checkout(topUp, { email: member.viewer.email, back }) };
		});
}

const PENDING_MAX = 20;

/**
 * Creates a pending bank transfer with a new reference; a retry with the same token returns the existing transfer.
 * Faults `invalid_request`, `conflict`.
 */
async function expectTopUp(
	parts: Parts<"statements" | "keyMaker" | "clock">,
	member: PermittedMember,
	wanted: { readonly amountNanoUsd: NanoUsd; readonly method: "transfer" | "card"; readonly token: string | undefined },
): Promise<TopUpRecord> {
	const { amountNanoUsd, method, token } = wanted;
	const { accountId } = member;
	// Bank transfers have whole cents.
	if (!isWholeCents(amountNanoUsd))
		throw new ConsoleError("invalid_request", "Amounts must be whole cents.", { param: "usd" });
	const expected = { accountId, amountNanoUsd, method, reference: newPaymentReference(), pendingMost: PENDING_MAX };
	const id = await claimIdOnPage(parts, member, { fresh: newId("top"), token, asked: { amountNanoUsd, method } });
	const act = member.noted("topup.create", { amountNanoUsd, reference: expected.reference });
	await createTopUp(parts.statements, expected, id, act);
	const topUp = await getTopUp(parts.statements, id);
	if (topUp.state === "pending") return topUp;
	return expectTopUp(parts, member, { ...wanted, token: hexOfId(id) });
}

const hexOfId = (id: string) => id.replace(/^.*_/, "");
