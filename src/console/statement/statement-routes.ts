import { Elysia, t } from "elysia";
import { languageOf } from "../../base/language.ts";
import { findAccount } from "../../keys/account-admin.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { ACCOUNT_QUERY } from "../page-query.ts";
import { type Party, readBillingDetails, saveBillingDetails } from "./billing-details.ts";
import { listMonths, readStatement } from "./statement.ts";
import { statementCsv } from "./statement-csv.ts";
import { statementLines } from "./statement-lines.ts";

const query = t.Object(ACCOUNT_QUERY);
const monthQuery = t.Object({ ...ACCOUNT_QUERY, month: t.String({ maxLength: 7 }) });
const details = t.Object({
	company: t.String({ maxLength: 200 }),
	address: t.String({ maxLength: 900 }),
	vatId: t.String({ maxLength: 40 }),
});

/** What each month came to, on paper, and who it is made out to. */
export function statementRoutes(parts: ConsoleParts) {
	const { statements, visits, brand } = parts;

	async function monthOf(request: Request, month: string) {
		const { accountId } = visits.account(request);
		const statement = await readStatement(statements, accountId, month);
		return { accountId, statement, lines: statementLines(statement, { origin: parts.origin(), accountId }) };
	}

	return new Elysia({ name: "console-statements", prefix: "/credit" })
		.get(
			"/statements",
			async ({ request }) => ({ items: await listMonths(statements, visits.account(request).accountId) }),
			{ query },
		)
		.get(
			"/statement.csv",
			async ({ request, query }) => {
				const { statement, lines } = await monthOf(request, query.month);
				return file(statementCsv(statement, lines), "text/csv; charset=utf-8", `statement-${query.month}.csv`);
			},
			{ query: monthQuery },
		)
		.get(
			"/statement.pdf",
			async ({ request, query }) => {
				const { accountId, statement, lines } = await monthOf(request, query.month);
				const account = await findAccount(statements, accountId);
				if (account === null) throw new ConsoleError("not_found", "There is no such account.");
				// It brings fonts, which nothing else needs.
				const { statementPdf } = await import("./statement-pdf.ts");
				const bytes = await statementPdf({
					statement,
					lines,
					language: languageOf(request.headers),
					serviceName: brand.serviceName,
					seller: brand.seller ?? { company: brand.serviceName, address: "", vatId: "" },
					buyer: await readBillingDetails(statements, accountId),
					account,
					font: brand.font,
					logUrl: (range) => `${parts.origin()}/requests?${queryOf({ ...range, account: accountId })}`,
				});
				return file(bytes, "application/pdf", `statement-${query.month}.pdf`);
			},
			{ query: monthQuery },
		)
		.get(
			"/billing-details",
			({ request }): Promise<Party> => readBillingDetails(statements, visits.account(request).accountId),
			{ query },
		)
		.put(
			"/billing-details",
			async ({ request, body }): Promise<Party> => {
				const { accountId } = visits.account(request);
				return saveBillingDetails(statements, accountId, body, (saved) =>
					visits.account(request).noted("account.billing_details", { ...saved }),
				);
			},
			{ query, body: details },
		);
}

function queryOf(values: Readonly<Record<string, string | number>>): URLSearchParams {
	return new URLSearchParams(Object.entries(values).map(([name, value]) => [name, String(value)]));
}

function file(body: string | Uint8Array<ArrayBuffer>, type: string, name: string): Response {
	const headers = { "content-type": type, "content-disposition": `attachment; filename="${name}"` };
	return new Response(body, { headers });
}
