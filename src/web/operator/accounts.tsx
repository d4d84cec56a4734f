import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { SearchField } from "../parts/fields.tsx";
import { Page, State } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { fromList, TablePanel } from "../parts/table.tsx";
import { Ago } from "../parts/text.tsx";
import { useList } from "../resource.ts";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";
import { operatorApi } from "./api.ts";

const TYPING_MS = 250;

export function AccountsPage() {
	const [search, setSearch] = useState("");
	const [wanted] = useDebouncedValue(search.trim(), TYPING_MS);
	const list = useList(`operator-accounts ${wanted}`, (after) => operatorApi.accounts(wanted, after));
	return (
		<Page title={t("Accounts")}>
			<TablePanel
				title={t("Accounts")}
				aside={
					<SearchField
						w={240}
						label={t("Search by email, name or id")}
						placeholder={t("Email, name or id, press /")}
						value={search}
						onChange={setSearch}
					/>
				}
				{...fromList(list)}
				rowKey={(account) => account.id}
				empty={
					<Empty title={wanted === "" ? t("No accounts yet.") : t("No account matches “{wanted}”.", { wanted })} />
				}
				columns={[
					{
						label: t("Email"),
						lead: true,
						render: (account) => <Link to={`/operator/accounts/${account.id}`}>{account.email}</Link>,
					},
					{ label: t("Name"), render: (account) => account.name },
					{ label: t("State"), render: (account) => <State value={account.state} /> },
					{
						label: t("Topped up"),
						render: ({ toppedUp }) => <State value={toppedUp ? "ok" : "off"} label={toppedUp ? t("Yes") : t("No")} />,
					},
					{ label: t("Created"), render: (account) => <Ago atMs={account.createdAtMs} /> },
					{ label: t("Spent"), amount: (account) => account.spentNanoUsd },
					{ label: t("Balance"), amount: (account) => account.balanceNanoUsd, corner: true },
				]}
			/>
		</Page>
	);
}
