import { escaped, factsTable, isolated, printPage } from "../print-page.ts";
import type { DocumentRow, DocumentTable, StatementDocument } from "./statement-document.ts";

export function statementPage(document: StatementDocument): Response {
	const { language, title, serviceName, accountId, from, to, facts, tables } = document;
	const party = ({ label, lines }: typeof from) => [label, lines.join("\n")] as const;
	const body = `<h1>${isolated(serviceName)}<br>${escaped(title)}</h1>
${factsTable([party(from), party(to), ...facts])}
${tables.map(tableHtml).join("\n")}`;
	return printPage(language, `${title}, ${accountId}`, body);
}

function tableHtml({ title, rows, more }: DocumentTable): string {
	const note = more === null ? "" : `<p>${escaped(more)}</p>`;
	return `<h2>${escaped(title)} (USD)</h2>
<table class="rows"><tbody>${rows.map(rowHtml).join("\n")}</tbody></table>${note}`;
}

function rowHtml({ cells: [name = "", ...cells], amount, url, strong }: DocumentRow): string {
	const head = url === undefined ? isolated(name) : `<a href="${escaped(url)}">${isolated(name)}</a>`;
	const others = cells.map((cell) => `<td>${isolated(cell)}</td>`).join("");
	return `<tr${strong ? ' class="strong"' : ""}><th scope="row">${head}</th>${others}<td class="amount">${escaped(amount)}</td></tr>`;
}
