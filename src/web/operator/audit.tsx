import { Box, Button, Group, Select } from "@mantine/core";
import { useState } from "react";
import { nanoUsd } from "../../money/nano-usd.ts";
import { SearchField } from "../parts/fields.tsx";
import { Page, Panel } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { DataTable, fromList } from "../parts/table.tsx";
import { Clipped, Moment } from "../parts/text.tsx";
import { useList } from "../resource.ts";
import { Link, useQueryState } from "../router.tsx";
import { showUsd } from "../shown-money.ts";
import { t } from "../texts.tsx";
import { type AuditRow, operatorApi } from "./api.ts";
import { AUDIT_WORDS, actorText, actText } from "./audit-words.ts";

export function AuditPage() {
	const [query, change] = useQueryState();
	const filter = { subject: query.get("subject"), actor: query.get("actor"), action: query.get("action") };
	const list = useList(`operator-audit ${JSON.stringify(filter)}`, (after) => operatorApi.audit(filter, after));
	return (
		<Page
			title={t("Audit")}
			lead={t(
				"Every act of an operator, on a key, or of the payment service. Lines are only ever added, and end by their age alone, where RETENTION_AUDIT_DAYS says so.",
			)}
		>
			<Panel flush title={t("Log")} aside={<Filter key={JSON.stringify(filter)} filter={filter} onChange={change} />}>
				<DataTable
					label={t("Audit log")}
					{...fromList(list)}
					rowKey={(row) => row.id}
					empty={<Empty title={t("No act matches.")} />}
					columns={[
						{ label: t("Time"), lead: true, render: (row) => <Moment atMs={row.atMs} form="log" /> },
						{ label: t("Who"), clip: true, long: true, render: (row) => <Clipped text={actorText(row)} /> },
						{
							label: t("Act"),
							render: (row) => (
								<Box miw={130} title={row.action}>
									{actText(row.action)}
								</Box>
							),
						},
						{ label: t("On|what was done"), render: (row) => <ShortId value={row.subject} /> },
						{
							label: t("Account"),
							render: (row) =>
								row.accountId === null ? (
									<span className="dim">–</span>
								) : (
									<Link to={`/operator/accounts/${row.accountId}`}>
										<ShortId value={row.accountId} />
									</Link>
								),
						},
						{ label: t("Detail"), long: true, render: (row) => <span className="small">{detailText(row)}</span> },
					]}
				/>
			</Panel>
		</Page>
	);
}

function Filter(props: {
	filter: { subject: string | null; action: string | null };
	onChange: (changes: Record<string, string | null>) => void;
}) {
	const { action } = props.filter;
	const [subject, setSubject] = useState(props.filter.subject ?? "");
	return (
		<form
			onSubmit={(event) => {
				event.preventDefault();
				props.onChange({ subject: subject.trim() });
			}}
		>
			<Group gap="xs">
				<SearchField
					label={t("Id of a key, account, top-up or payment")}
					placeholder={t("Id, press /")}
					value={subject}
					onChange={setSubject}
				/>
				<Select
					size="xs"
					w={210}
					aria-label={t("Act")}
					placeholder={t("Any act")}
					data={actsWith(action)}
					value={action}
					onChange={(chosen) => props.onChange({ action: chosen })}
					searchable
					clearable
					nothingFoundMessage={t("No such act")}
				/>
				<Button type="submit" size="xs" variant="default">
					{t("Filter")}
				</Button>
			</Group>
		</form>
	);
}

const ACTS = Object.entries(AUDIT_WORDS)
	.map(([value, label]) => ({ value, label }))
	.sort((a, b) => a.label.localeCompare(b.label));

/** The choices of the filter; an unknown act in the address is added as a choice. */
const actsWith = (action: string | null) =>
	action === null || action in AUDIT_WORDS ? ACTS : [{ value: action, label: action }, ...ACTS];

/** A long id is shortened; the tooltip has the whole id. */
function ShortId({ value }: { value: string }) {
	const short = value.length > 20 ? `${value.slice(0, 8)}…${value.slice(-6)}` : value;
	return (
		<code className="num" title={value}>
			{short}
		</code>
	);
}

function detailText({ detail, ip }: AuditRow): string {
	const parts = Object.entries((detail ?? {}) as Record<string, unknown>).map(([name, value]) =>
		name.endsWith("NanoUsd") && typeof value === "number"
			? `${name.slice(0, -"NanoUsd".length)}: ${showUsd(nanoUsd(value))}`
			: `${name}: ${typeof value === "object" ? JSON.stringify(value) : String(value)}`,
	);
	if (ip !== null) parts.push(t("from {address}", { address: ip }));
	return parts.join(", ");
}
