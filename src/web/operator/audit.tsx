import { Box, Group } from "@mantine/core";
import { nanoUsd } from "../../money/nano-usd.ts";
import { SearchField, useField } from "../parts/fields.tsx";
import { FilterSelect } from "../parts/filters.tsx";
import { Form } from "../parts/form.tsx";
import { Empty, Page } from "../parts/page.tsx";
import { fromList, TablePanel } from "../parts/table.tsx";
import { Timestamp, TruncatedText } from "../parts/text.tsx";
import { useList } from "../resource.ts";
import { Link, useQueryState } from "../router.tsx";
import { showUsd, t } from "../texts.tsx";
import { type AuditRow, operatorApi } from "./api.ts";
import { AUDIT_LABELS, actorText, actText } from "./audit-words.ts";

export function AuditPage() {
	const [query, change] = useQueryState();
	const filter = { subject: query.get("subject"), actor: query.get("actor"), action: query.get("action") };
	const list = useList(`operator-audit ${JSON.stringify(filter)}`, (after) => operatorApi.audit(filter, after));
	return (
		<Page
			title={t("Audit log")}
			lead={t(
				"Operator actions, key changes and payment events. Entries cannot be changed. If RETENTION_AUDIT_DAYS is set, older entries are deleted.",
			)}
		>
			<Group gap="xs" align="flex-end">
				<SubjectField key={filter.subject} subject={filter.subject ?? ""} onChange={(subject) => change({ subject })} />
				<FilterSelect name="action" label={t("Action")} data={ACTIONS} searchable />
			</Group>
			<TablePanel
				title={t("Log")}
				label={t("Audit log")}
				{...fromList(list)}
				empty={<Empty title={t("No entries match.")} />}
				columns={[
					{ label: t("Time"), lead: true, render: (row) => <Timestamp atMs={row.atMs} form="log" /> },
					{ label: t("Actor"), clip: true, long: true, render: (row) => <TruncatedText text={actorText(row)} /> },
					{
						label: t("Action"),
						render: (row) => (
							<Box miw={130} title={row.action}>
								{actText(row.action)}
							</Box>
						),
					},
					{ label: t("Subject"), render: (row) => <ShortId value={row.subject} /> },
					{
						label: t("Account"),
						render: ({ accountId }) =>
							accountId !== null && (
								<Link to={`/operator/accounts/${accountId}`}>
									<ShortId value={accountId} />
								</Link>
							),
					},
					{ label: t("Details"), long: true, render: (row) => <span className="small">{detailText(row)}</span> },
				]}
			/>
		</Page>
	);
}

function SubjectField(props: { subject: string; onChange: (subject: string) => void }) {
	const subject = useField(props.subject);
	return (
		<Form onSubmit={() => props.onChange(subject.value.trim())}>
			<SearchField label={t("Id of a key, account, top-up or payment")} placeholder={t("Id (press /)")} {...subject} />
		</Form>
	);
}

const ACTIONS = Object.entries(AUDIT_LABELS)
	.map(([value, label]) => ({ value, label }))
	.sort((a, b) => a.label.localeCompare(b.label));

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
