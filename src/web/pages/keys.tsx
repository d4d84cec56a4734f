import { useState } from "react";
import { api } from "../api.ts";
import { formatCount } from "../format.ts";
import { isArchived } from "../key-use.ts";
import { KEY_COLUMN } from "../parts/account-tables.tsx";
import { CapBar } from "../parts/cap-bar.tsx";
import { SearchField } from "../parts/fields.tsx";
import { ActButton } from "../parts/form.tsx";
import { Page, State } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { type Column, fromList, TablePanel } from "../parts/table.tsx";
import { Ago } from "../parts/text.tsx";
import { useList } from "../resource.ts";
import { Link, useCreating } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import { t } from "../texts.tsx";
import type { KeyView } from "../views.ts";
import { KeyCreateDialog } from "./key-create.tsx";

export const KEY_COLUMNS: readonly Column<KeyView>[] = [
	{ label: t("Name"), lead: true, render: (key) => <Link to={`/keys/${key.id}`}>{key.name}</Link> },
	KEY_COLUMN,
	{ label: t("State"), corner: true, render: (key) => <KeyState item={key} /> },
	{ label: t("Project"), clip: true, render: (key) => key.projectName ?? "–" },
	{ label: t("Models"), render: (key) => (key.models.length === 0 ? t("All") : formatCount(key.models.length)) },
	{ label: t("Last used"), render: (key) => <Ago atMs={key.lastUsedAtMs} /> },
	{ label: t("Cap"), render: (key) => <CapBar item={key} small /> },
	{ label: t("Spent"), amount: (key) => key.spentNanoUsd },
];

export function KeyState({ item }: { item: KeyView }) {
	if (item.state === "active" && item.replacedBy) return <State value="draining" label={t("Being replaced")} />;
	return <State value={isArchived(item) ? "archived" : item.state} />;
}

export default function KeysPage() {
	const account = useAccount();
	const may = useMay();
	const [isOpen, setOpen] = useCreating();
	const [search, setSearch] = useState("");
	const list = useList(`keys ${account.id}`, (after) => api.keys(account.id, after));
	const wanted = search.trim().toLowerCase();
	const shown = list.items?.filter((key) => `${key.name} ${key.prefix} ${key.lastFour}`.toLowerCase().includes(wanted));
	const create = may("keys.change") && (
		<ActButton label={t("Create a key")} look="main" icon="plus" onClick={() => setOpen(true)} />
	);

	return (
		<Page title={t("Keys")} lead={t("Use one key per application and environment.")} aside={create}>
			<TablePanel
				title={t("API keys")}
				aside={
					<SearchField
						label={t("Search keys")}
						placeholder={t("Search, press /")}
						value={search}
						onChange={setSearch}
					/>
				}
				columns={KEY_COLUMNS}
				{...fromList({ ...list, items: shown })}
				rowKey={(key) => key.id}
				empty={
					wanted === "" ? (
						<Empty title={t("No keys yet.")} action={create}>
							{t(
								"Applications call the service with a key. A key can have a spending cap and a list of allowed models.",
							)}
						</Empty>
					) : (
						<Empty title={t("No key matches “{search}”.", { search: search.trim() })} />
					)
				}
			/>
			<KeyCreateDialog
				open={isOpen && may("keys.change")}
				onClose={() => setOpen(false)}
				onCreated={() => void list.reload()}
			/>
		</Page>
	);
}
