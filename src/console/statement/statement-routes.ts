import { t } from "elysia";
import { requestLanguage } from "../../base/language.ts";
import { getAccount } from "../../keys/account-admin.ts";
import { accountRoutes, type Parts } from "../console-deps.ts";
import { bidiIsolatedHtml, detailsTable, escapeHtml, printPage } from "../print-page.ts";
import { readBillingDetails, saveBillingDetails } from "./billing-details.ts";
import { createPdfQueue } from "./pdf-queue.ts";
import { listMonths, readStatement } from "./statement.ts";
import {
	type DocumentRow,
	type DocumentTable,
	type StatementDocument,
	statementDocument,
} from "./statement-document.ts";
import { csvFile, statementCsv, statementLines } from "./statement-lines.ts";

const details = t.Object({
	company: t.String({ maxLength: 200 }),
	address: t.String({ maxLength: 900 }),
	vatId: t.String({ maxLength: 40 }),
});

export function statementRoutes(parts: Parts<"statements" | "brand" | "clock" | "sessions" | "origin">) {
	const { statements, sessions, brand } = parts;
	const pdfs = createPdfQueue(parts);

	async function monthOf(request: Request, month: string) {
		const { accountId } = sessions.account(request);
		const statement = await readStatement(statements, accountId, month);
		return { accountId, statement, lines: statementLines(statement, { origin: parts.origin(), accountId }) };
	}
	async function documentOf(request: Request, month: string): Promise<StatementDocument> {
		const { accountId, statement, lines } = await monthOf(request, month);
		const account = await getAccount(statements, accountId);
		return statementDocument({
			...{ statement, lines, account, serviceName: brand.serviceName },
			language: requestLanguage(request.headers),
			seller: brand.seller ?? { company: brand.serviceName, address: "", vatId: "" },
			buyer: await readBillingDetails(statements, accountId),
			logUrl: (range) => `${parts.origin()}/requests?${new URLSearchParams({ ...range, account: accountId })}`,
		});
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
			return csvFile(statementCsv(statement, lines), `statement-${query.month}.csv`);
		})
		.get("/statement", async ({ request, query }) => statementPage(await documentOf(request, query.month)))
		.get("/statement.pdf", async ({ request, query }) => {
			const document = await documentOf(request, query.month);
			const key = Bun.SHA256.hash(JSON.stringify(document), "hex");
			// Loaded on demand, because it contains a font.
			const { statementPdf } = await import("./statement-pdf.ts");
			const bytes = await pdfs.make(document.accountId, key, () => statementPdf(document));
			const name = `statement-${query.month}.pdf`;
			const headers = { "content-type": "application/pdf", "content-disposition": `attachment; filename="${name}"` };
			return new Response(bytes, { headers });
		});
}

export function statementPage(document: StatementDocument): Response {
	const { language, title, serviceName, accountId, from, to, facts, tables } = document;
	const party = ({ label, lines }: typeof from) => [label, lines.join("\n")] as const;
	const body = `<h1>${bidiIsolatedHtml(serviceName)}<br>${escapeHtml(title)}</h1>
${detailsTable([party(from), party(to), ...facts])}
${tables.map(tableHtml).join("\n")}`;
	return printPage(language, `${title}, ${accountId}`, body);
}

function tableHtml({ title, rows, more }: DocumentTable): string {
	const note = more === null ? "" : `<p>${escapeHtml(more)}</p>`;
	return `<h2>${escapeHtml(title)} (USD)</h2>
<table class="rows"><tbody>${rows.map(rowHtml).join("\n")}</tbody></table>${note}`;
}

function rowHtml({ cells: [name = "", ...cells], amount, url, strong }: DocumentRow): string {
	const head =
		url === undefined ? bidiIsolatedHtml(name) : `<a href="${escapeHtml(url)}">${bidiIsolatedHtml(name)}</a>`;
	const others = cells.map((cell) => `<td>${bidiIsolatedHtml(cell)}</td>`).join("");
	return `<tr${strong ? ' class="strong"' : ""}><th scope="row">${head}</th>${others}<td class="amount">${escapeHtml(amount)}</td></tr>`;
}
