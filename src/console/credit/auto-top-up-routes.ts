import { t } from "elysia";
import { readAutoAttempts, readAutoTopUp, saveAutoTopUp, switchOffAutoTopUp } from "../../billing/auto-top-ups.ts";
import type { CardPayments } from "../../billing/card-payments.ts";
import { accountRoutes } from "../account-routes.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { parseAmount, USD } from "../page-query.ts";

export function autoTopUpRoutes(parts: Parts<"statements" | "cards" | "sessions" | "origin">) {
	const { statements } = parts;
	const cards = (): CardPayments => {
		if (!parts.cards)
			throw new ConsoleError("service_unavailable", "Card payments are not set up. Use a bank transfer.");
		return parts.cards;
	};

	return accountRoutes(parts, "console-auto-top-up", "/credit")
		.get("/auto-top-up", ({ member }) => viewOf(parts, member.accountId))
		.put(
			"/auto-top-up",
			async ({ member: { accountId, noted }, body }) => {
				cards();
				const amounts = {
					belowNanoUsd: parseAmount(body.belowUsd, "belowUsd"),
					amountNanoUsd: parseAmount(body.amountUsd, "amountUsd"),
					monthMostNanoUsd: parseAmount(body.monthMostUsd, "monthMostUsd"),
				};
				// The audit log stores the agreed terms, the person and the time.
				await saveAutoTopUp(statements, accountId, amounts, noted("auto_topup.save", body));
				return viewOf(parts, accountId);
			},
			{ body: t.Object({ belowUsd: USD, amountUsd: USD, monthMostUsd: USD, consent: t.Literal(true) }) },
		)
		.delete("/auto-top-up", async ({ member: { accountId, noted } }) => {
			await switchOffAutoTopUp(statements, accountId, noted("auto_topup.off"));
			return viewOf(parts, accountId);
		})
		.post("/auto-top-up/finish", async ({ member: { accountId } }): Promise<{ url: string }> => {
			return { url: await cards().finish(accountId, `${parts.origin()}/credit?topup=`) };
		})
		.post("/card", async ({ member: { accountId, viewer, noted } }): Promise<{ url: string }> => {
			const back = `${parts.origin()}/credit?card=`;
			return { url: await cards().saved.setup(accountId, { email: viewer.email, back }, noted("card.add")) };
		})
		.delete("/card", async ({ member: { accountId, noted } }) => {
			await cards().saved.remove(accountId, noted("card.remove"));
			return viewOf(parts, accountId);
		});
}

/** `autoTopUp` is null while it is off. `boughtNanoUsd` is the sum of this month's attempts, with pending ones. */
async function viewOf({ statements, cards }: Parts<"statements" | "cards">, accountId: string) {
	const [card, autoTopUp, { attempts, boughtNanoUsd }] = await Promise.all([
		cards === undefined ? null : cards.saved.read(accountId),
		readAutoTopUp(statements, accountId),
		readAutoAttempts(statements, accountId),
	]);
	return { card, autoTopUp, attempts, boughtNanoUsd };
}
