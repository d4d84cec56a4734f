import { t } from "elysia";
import { languageOf } from "../../base/language.ts";
import { findAccount } from "../../keys/account-admin.ts";
import { accountRoutes } from "../account-routes.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { readBillingDetails, saveBillingDetails } from "./billing-details.ts";
import { createPdfQueue } from "./pdf-queue.ts";
import { listMonths, readStatement } from "./statement.ts";
import { statementCsv } from "./statement-csv.ts";
import { type StatementDocument, statementDocument } from "./statement-document.ts";
import { statementLines } from "./statement-lines.ts";
import { statementPage } from "./statement-page.ts";

const details = t.Object({
	company: t.String({ maxLength: 200 }),
	address: t.String({ maxLength: 900 }),
	vatId: t.String({ maxLength: 40 }),
});

export function statementRoutes(parts: Parts<"statements" | "brand" | "sessions" | "origin">) {
	const { statements, sessions, brand } = parts;
	const pdfs = createPdfQueue();

	async function monthOf(request: Request, month: string) {
		const { accountId } = sessions.account(request);
		const statement = await readStatement(statements, accountId, month);
		return { accountId, statement, lines: statementLines(statement, { origin: parts.origin(), accountId }) };
	}
	async function documentOf(request: Request, month: string): Promise<StatementDocument & { isClosed: boolean }> {
		const { accountId, statement, lines } = await monthOf(request, month);
		const account = await findAccount(statements, accountId);
		if (account === null) throw new ConsoleError("not_found", "There is no such account.");
		const document = statementDocument({
			...{ statement, lines, account, serviceName: brand.serviceName },
			language: languageOf(request.headers),
			seller: brand.seller ?? { company: brand.serviceName, address: "", vatId: "" },
			buyer: await readBillingDetails(statements, accountId),
			logUrl: (range) => `${parts.origin()}/requests?${new URLSearchParams({ ...range, account: accountId })}`,
		});
		return { ...document, isClosed: statement.state === "closed" };
	}

	return accountRoutes(parts, "console-statements", "/credit")
		.get("/statements", async ({ member }) => ({ items: await listMonths(statements, member.accountId) }))
		.get("/billing-details", ({ member }) => readBillingDetails(statements, member.accountId))
		.put(
			"/billing-details",
			({ member: { accountId, noted }, body }) =>
				saveBillingDetails(statements, accountId, body, (saved) => noted("account.billing_details", { ...saved })),
			{ body: details },
		)
		.guard({ schema: "standalone", query: t.Object({ month: t.String({ maxLength: 7 }) }) })
		.get("/statement.csv", async ({ request, query }) => {
			const { statement, lines } = await monthOf(request, query.month);
			return file(statementCsv(statement, lines), "text/csv; charset=utf-8", `statement-${query.month}.csv`);
		})
		.get("/statement", async ({ request, query }) => statementPage(await documentOf(request, query.month)))
		.get("/statement.pdf", async ({ request, query }) => {
			const { isClosed, ...document } = await documentOf(request, query.month);
			const key = isClosed ? Bun.SHA256.hash(JSON.stringify(document), "hex") : null;
			// Loaded on demand, because it contains a font.
			const { statementPdf } = await import("./statement-pdf.ts");
			const bytes = await pdfs.make(document.accountId, key, () => statementPdf(document));
			return file(bytes, "application/pdf", `statement-${query.month}.pdf`);
		});
}

function file(body: string | Uint8Array<ArrayBuffer>, type: string, name: string): Response {
	const headers = { "content-type": type, "content-disposition": `attachment; filename="${name}"` };
	return new Response(body, { headers });
}
