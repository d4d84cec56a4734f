import { api } from "../api.ts";
import { Panel, State } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { DataTable, fromItems } from "../parts/table.tsx";
import { useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { locale, rich, t } from "../texts.tsx";
import type { StatementMonth } from "../views.ts";

const STATES: Readonly<Record<StatementMonth["state"], { label: string; tone: "ok" | "warn" | "off" }>> = {
	closed: { label: t("Closed"), tone: "ok" },
	over: { label: t("Being closed"), tone: "warn" },
	running: { label: t("Running"), tone: "off" },
};
const MONTH = new Intl.DateTimeFormat(locale, { year: "numeric", month: "long", timeZone: "UTC" });

/** Monthly statements for the customer's bookkeeping. */
export function StatementsPanel({ accountId }: { accountId: string }) {
	const months = useResource(`statements ${accountId}`, () => api.statements(accountId));
	const file = (month: string, kind: "pdf" | "csv") => (
		<a
			href={api.statementAddress(accountId, month, `.${kind}`)}
			download
			aria-label={t("{month} as {kind}", { month, kind: kind.toUpperCase() })}
		>
			{kind.toUpperCase()}
		</a>
	);
	return (
		<Panel title={t("Statements")} flush>
			<DataTable
				label={t("Statements")}
				{...fromItems(months)}
				rowKey={({ month }) => month}
				empty={<Empty title={t("No month yet.")} />}
				columns={[
					{
						label: t("Month"),
						lead: true,
						render: ({ month }) => MONTH.format(Date.parse(`${month}-01T00:00:00Z`)),
					},
					{
						label: t("State"),
						corner: true,
						render: ({ state }) => <State value={state} {...STATES[state]} />,
					},
					{
						label: t("Files"),
						act: true,
						right: true,
						render: ({ month }) => (
							<>
								<a href={api.statementAddress(accountId, month, "")} target="_blank" rel="noreferrer">
									{t("View")}
								</a>{" "}
								· {file(month, "pdf")} · {file(month, "csv")}
							</>
						),
					},
				]}
			/>
			<p className="small dim panel-note">
				{rich(
					"Months in UTC. Each is closed within hours of its end, and its figures never change then. Your company, address and VAT ID are in the <link>settings</link>.",
					{ link: (inner) => <Link to="/settings">{inner}</Link> },
				)}
			</p>
		</Panel>
	);
}
