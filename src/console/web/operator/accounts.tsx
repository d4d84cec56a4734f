import { TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { Page, Panel, State } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago } from "../parts/text.tsx";
import { useList } from "../resource.ts";
import { Link } from "../router.tsx";
import { operatorApi } from "./api.ts";

const TYPING_MS = 250;

export function AccountsPage() {
	const [search, setSearch] = useState("");
	const [wanted] = useDebouncedValue(search.trim(), TYPING_MS);
	const list = useList(`operator-accounts ${wanted}`, (after) => operatorApi.accounts(wanted, after));
	return (
		<Page title="Accounts">
			<Panel
				flush
				title="Accounts"
				aside={
					<TextInput
						size="xs"
						w={240}
						aria-label="Search by email, name or id"
						placeholder="Email, name or id, press /"
						data-search
						value={search}
						onChange={(event) => setSearch(event.currentTarget.value)}
					/>
				}
			>
				<DataTable
					label="Accounts"
					rows={list.items}
					rowKey={(account) => account.id}
					error={list.error}
					retry={() => void list.reload()}
					more={{ next: list.next, busy: list.more.busy, error: list.more.error, load: () => void list.more.run() }}
					empty={<Empty title={wanted === "" ? "No accounts yet." : `No account matches “${wanted}”.`} />}
					columns={[
						{
							label: "Email",
							lead: true,
							render: (account) => <Link to={`/operator/accounts/${account.id}`}>{account.email}</Link>,
						},
						{ label: "Name", render: (account) => account.name },
						{ label: "State", render: (account) => <State value={account.state} /> },
						{
							label: "Topped up",
							render: (account) => (
								<State value={account.toppedUp ? "ok" : "off"} label={account.toppedUp ? "Yes" : "No"} />
							),
						},
						{ label: "Made", render: (account) => <Ago atMs={account.createdAtMs} /> },
						{ label: "Spent", amount: (account) => account.spentNanoUsd },
						{ label: "Balance", amount: (account) => account.balanceNanoUsd, corner: true },
					]}
				/>
			</Panel>
		</Page>
	);
}
