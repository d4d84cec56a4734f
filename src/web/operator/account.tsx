import { SimpleGrid } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import type { Fence } from "../api.ts";
import { roleName } from "../labels.ts";
import { KeyState } from "../pages/keys.tsx";
import { BalanceFigures, KEY_COLUMN, ledgerColumns, topUpColumns } from "../parts/account-tables.tsx";
import { FenceNotice } from "../parts/dialog.tsx";
import { CheckField, SearchField, TextField, useField } from "../parts/fields.tsx";
import { ActButton } from "../parts/form.tsx";
import { DetailList, Empty, ErrorMessage, LoadState, Page, Panel, State } from "../parts/page.tsx";
import { fromList, TablePanel } from "../parts/table.tsx";
import { CopyableId, RelativeTime, Timestamp } from "../parts/text.tsx";
import { useAction, useList, useResource } from "../resource.ts";
import { Link, navigate } from "../router.tsx";
import { useSession } from "../session.tsx";
import { formatCount, t } from "../texts.tsx";
import { useAttempt } from "../token.ts";
import { type OperatorAccount, operatorApi } from "./api.ts";
import { reasonField, useDecision } from "./decision.tsx";
import { AgreedPrices, usePrices } from "./prices.tsx";

export function AccountPage({ id }: { id: string }) {
	const detail = useResource(`operator-account ${id}`, () => operatorApi.account(id));
	const [fence, setFence] = useState<Fence>();
	const usd = useField();
	const [isPromotion, setIsPromotion] = useState(false);
	const lastDay = useField();
	// Kept outside the dialog: a retry in a reopened dialog sends the same token and adjusts the credit once.
	const attempt = useAttempt();
	const data = detail.data;
	const { chooseAccount } = useSession();
	const view = useAction(async () => {
		await operatorApi.view(id);
		await chooseAccount(id);
		navigate("/overview");
	});
	const isSuspended = data?.account.state === "suspended";
	const terms = useTerms(data?.account, setFence);
	const prices = usePrices(id, setFence);
	const [dialog, choose] = useDecision<"suspend" | "lift" | "adjust" | "terms" | "prices">(
		(choice) => {
			if (choice === "terms") return terms.decision;
			if (choice === "prices") return prices.decision;
			if (choice !== "adjust") return suspension(id, choice === "suspend", setFence);
			return {
				title: t("Adjust the credit"),
				about: (
					<>
						<TextField
							label={t("Amount in USD")}
							description={t("Negative amounts remove credit, for example -12.50")}
							inputMode="decimal"
							pattern="-?[0-9]+(\.[0-9]{1,9})?"
							data-autofocus
							{...usd}
						/>
						<CheckField
							label={t("Promotional credit")}
							description={t("Spent before paid credit. API access still requires a first top-up")}
							checked={isPromotion}
							onChange={setIsPromotion}
						/>
						{isPromotion && (
							<TextField
								label={t("Last day (UTC)")}
								description={t("Unspent credit is removed after this day. Leave empty for no expiry")}
								type="date"
								required={false}
								{...lastDay}
							/>
						)}
					</>
				),
				act: t("Adjust"),
				field: { label: t("Reason"), description: t("Shown in the customer's ledger and saved in the audit log") },
				run: async (reason) => {
					const promotion = isPromotion ? { promotion: { lastDay: lastDay.value || null } } : {};
					const asked = { id, usd: usd.value.trim(), reason, ...promotion };
					const { secondLookNeeded } = await attempt.send(asked, (token) => operatorApi.adjust(asked, token));
					return secondLookNeeded
						? t("Recorded. An adjustment of this size needs a second operator's confirmation on the Today page.")
						: undefined;
				},
			};
		},
		() => {
			usd.onChange("");
			setIsPromotion(false);
			lastDay.onChange("");
			terms.reset();
			prices.reset();
			void detail.reload();
		},
	);
	return (
		<Page
			title={data?.account.name || data?.account.email || t("Account")}
			lead={<CopyableId value={id} label={t("Copy the account's id")} />}
			aside={
				data && (
					<>
						<ActButton label={t("Tags and limit")} onClick={() => choose("terms")} />
						<ActButton label={t("Prices")} onClick={() => choose("prices")} />
						<ActButton label={t("View as customer")} action={view} />
						<ActButton label={t("Adjust the credit")} onClick={() => choose("adjust")} />
						{isSuspended ? (
							<ActButton label={t("Lift the suspension")} onClick={() => choose("lift")} />
						) : (
							<ActButton label={t("Suspend")} look="danger" onClick={() => choose("suspend")} />
						)}
					</>
				)
			}
		>
			{view.error && <ErrorMessage error={view.error} />}
			<LoadState of={detail} height={320} />
			{fence && <FenceNotice fence={fence} done={t("In effect on all instances")} />}
			{data && <Detail data={data} />}
			{dialog}
		</Page>
	);
}

/** Dialog for an account's tags and token limit. Unedited fields keep their values. */
function useTerms(account: OperatorAccount["account"] | undefined, onDone: (fence: Fence) => void) {
	const [draft, setDraft] = useState<{ tags?: string; tokens?: string }>({});
	const tags = draft.tags ?? account?.tags.join(", ") ?? "";
	const tokens = draft.tokens ?? String(account?.tokensPerMinute ?? "");
	const about = (
		<>
			<TextField
				label={t("Tags")}
				description={t("Words that tollgate.yaml uses for limits and private models, for example: large, pilot")}
				data-autofocus
				value={tags}
				onChange={(text) => setDraft({ ...draft, tags: text })}
			/>
			<TextField
				label={t("Tokens per minute")}
				description={t("Leave empty to use the limit of the account's tags")}
				inputMode="numeric"
				pattern="[0-9]{1,10}"
				value={tokens}
				onChange={(text) => setDraft({ ...draft, tokens: text })}
			/>
		</>
	);
	async function run(): Promise<undefined> {
		if (account === undefined) return;
		const { fence } = await operatorApi.setTerms(account.id, {
			tags: tags.split(/[\s,]+/).filter((tag) => tag !== ""),
			tokensPerMinute: tokens === "" ? null : Number(tokens),
		});
		if (fence !== null) onDone(fence);
	}
	return { reset: () => setDraft({}), decision: { title: t("Tags and limit"), about, act: t("Save"), run } };
}

const suspension = (id: string, isOn: boolean, onDone: (fence: Fence) => void) => ({
	title: isOn ? t("Suspend the account") : t("Lift the suspension"),
	about: (
		<p>
			{isOn
				? t("All API keys of this account stop working. Requests that are already running finish and are charged.")
				: t("The API keys of this account work again.")}
		</p>
	),
	act: isOn ? t("Suspend") : t("Lift the suspension"),
	danger: isOn,
	field: reasonField(),
	run: async (reason: string) => {
		onDone((await (isOn ? operatorApi.suspend(id, reason) : operatorApi.unsuspend(id, reason))).fence);
		return undefined;
	},
});

function Detail({ data }: { data: OperatorAccount }) {
	const { account, balance, promotions } = data;
	return (
		<>
			<Panel>
				<BalanceFigures balance={balance} promotions={promotions} />
			</Panel>
			<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
				<Panel title={t("Account")}>
					<DetailList
						of={{
							[t("Email")]: account.email,
							[t("State")]: <State value={account.state} />,
							[t("Topped up")]: account.toppedUp ? t("Yes") : t("No"),
							[t("Tags")]: account.tags.join(", ") || t("None"),
							[t("Tokens per minute")]:
								account.tokensPerMinute === null
									? t("Limit of the account's tags")
									: formatCount(account.tokensPerMinute),
							[t("Prices")]: <AgreedPrices of={account.agreements} />,
							[t("Created")]: <Timestamp atMs={account.createdAtMs} />,
							[t("Audit log")]: <Link to={`/operator/audit?subject=${account.id}`}>{t("Events of this account")}</Link>,
						}}
					/>
				</Panel>
				<TablePanel
					title={t("Members")}
					rows={data.members}
					rowKey={(member) => member.userId}
					empty={<Empty title={t("No members.")} />}
					columns={[
						{ label: t("Email"), lead: true, render: (member) => member.email },
						{ label: t("Role"), render: (member) => roleName(member.role) },
					]}
				/>
			</SimpleGrid>
			<TablePanel
				title={t("Keys")}
				rows={data.keys}
				empty={<Empty title={t("No keys.")} />}
				columns={[
					{ label: t("Name"), lead: true, render: (key) => key.name },
					KEY_COLUMN,
					{ label: t("State"), corner: true, render: (key) => <KeyState item={key} /> },
					{ label: t("Last used"), render: (key) => <RelativeTime atMs={key.lastUsedAtMs} /> },
					{ label: t("Cap"), amount: (key) => key.capNanoUsd },
					{ label: t("Spent"), amount: (key) => key.spentNanoUsd },
				]}
			/>
			<TablePanel
				title={t("Top-ups")}
				rows={data.topUps}
				empty={<Empty title={t("No top-ups.")} />}
				columns={topUpColumns()}
			/>
			<TablePanel
				title={t("Ledger")}
				rows={data.entries}
				empty={<Empty title={t("No entries yet.")} />}
				columns={ledgerColumns()}
			/>
		</>
	);
}

const TYPING_MS = 250;

export function AccountsPage() {
	const search = useField();
	const [wanted] = useDebouncedValue(search.value.trim(), TYPING_MS);
	const list = useList(`operator-accounts ${wanted}`, (after) => operatorApi.accounts(wanted, after));
	return (
		<Page title={t("Accounts")}>
			<TablePanel
				title={t("Accounts")}
				aside={
					<SearchField
						w={240}
						label={t("Search by email, name or id")}
						placeholder={t("Email, name or id (press /)")}
						{...search}
					/>
				}
				{...fromList(list)}
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
					{ label: t("Created"), render: (account) => <RelativeTime atMs={account.createdAtMs} /> },
					{ label: t("Spent"), amount: (account) => account.spentNanoUsd },
					{ label: t("Balance"), amount: (account) => account.balanceNanoUsd, corner: true },
				]}
			/>
		</Page>
	);
}
