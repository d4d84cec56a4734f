import { Button, SimpleGrid } from "@mantine/core";
import { useState } from "react";
import { roleName } from "../labels.ts";
import { KeyState } from "../pages/keys.tsx";
import { KEY_COLUMN, ledgerColumns, topUpColumns } from "../parts/account-tables.tsx";
import { BalanceFigures } from "../parts/balance-figures.tsx";
import { ActDialog, Dialog, DialogDone, FenceNotice } from "../parts/dialog.tsx";
import { TextField } from "../parts/fields.tsx";
import { fieldError } from "../parts/form.tsx";
import { Facts, Page, Panel, State } from "../parts/page.tsx";
import { Empty, Notice, Reading } from "../parts/problem.tsx";
import { TablePanel } from "../parts/table.tsx";
import { Ago, Id, Moment } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";
import type { Fence } from "../views.ts";
import { type OperatorAccount, operatorApi } from "./api.ts";
import { DecisionDialog } from "./decision.tsx";

export function AccountPage({ id }: { id: string }) {
	const detail = useResource(`operator-account ${id}`, () => operatorApi.account(id));
	const [dialog, setDialog] = useState<"state" | "adjust">();
	const [fence, setFence] = useState<Fence>();
	// Every attempt sends the same key until one is answered, even after the dialog was cancelled, so an adjustment is
	// booked once.
	const [idempotencyKey, setIdempotencyKey] = useState(newUuid);
	const data = detail.data;
	const suspended = data?.account.state === "suspended";
	const done = () => {
		setDialog(undefined);
		void detail.reload();
	};
	return (
		<Page
			title={data?.account.name || data?.account.email || t("Account")}
			lead={<Id value={id} label={t("Copy the account's id")} />}
			aside={
				data && (
					<>
						<Button size="xs" variant="default" onClick={() => setDialog("adjust")}>
							{t("Adjust the credit")}
						</Button>
						<Button
							size="xs"
							{...(suspended ? { variant: "default" } : { variant: "light", color: "red" })}
							onClick={() => setDialog("state")}
						>
							{suspended ? t("Lift the suspension") : t("Suspend")}
						</Button>
					</>
				)
			}
		>
			<Reading of={detail} height={320} />
			{fence && <FenceNotice fence={fence} done={t("It applies on all instances")} />}
			{data && <Detail data={data} />}
			{dialog === "state" && (
				<DecisionDialog
					title={suspended ? t("Lift the suspension") : t("Suspend the account")}
					about={
						<p>
							{suspended
								? t("Its keys are accepted again.")
								: t("All its keys are refused from now on. Requests that are already admitted finish and are charged.")}
						</p>
					}
					act={suspended ? t("Lift it") : t("Suspend")}
					danger={!suspended}
					reason={{ description: t("Kept in the audit log") }}
					onClose={() => setDialog(undefined)}
					run={async (reason) => {
						const result = await (suspended ? operatorApi.unsuspend(id, reason) : operatorApi.suspend(id, reason));
						setFence(result.fence);
						done();
					}}
				/>
			)}
			{dialog === "adjust" && (
				<AdjustDialog
					{...{ id, idempotencyKey }}
					onClose={() => {
						setDialog(undefined);
						// An adjustment whose answer was lost may be booked: the reload shows it in the ledger.
						void detail.reload();
					}}
					onDone={() => {
						setIdempotencyKey(newUuid());
						done();
					}}
				/>
			)}
		</Page>
	);
}

function Detail({ data }: { data: OperatorAccount }) {
	const { account, balance } = data;
	return (
		<>
			<Panel>
				<BalanceFigures balance={balance} />
			</Panel>
			<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
				<Panel title={t("Account")}>
					<Facts
						of={{
							[t("Email")]: account.email,
							[t("State")]: <State value={account.state} />,
							[t("Topped up")]: account.toppedUp ? t("Yes") : t("No"),
							[t("Created")]: <Moment atMs={account.createdAtMs} />,
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
				rowKey={(key) => key.id}
				empty={<Empty title={t("No keys.")} />}
				columns={[
					{ label: t("Name"), lead: true, render: (key) => key.name },
					KEY_COLUMN,
					{ label: t("State"), corner: true, render: (key) => <KeyState item={key} /> },
					{ label: t("Last used"), render: (key) => <Ago atMs={key.lastUsedAtMs} /> },
					{ label: t("Cap"), amount: (key) => key.capNanoUsd },
					{ label: t("Spent"), amount: (key) => key.spentNanoUsd },
				]}
			/>
			<TablePanel
				title={t("Top-ups")}
				rows={data.topUps}
				rowKey={(topUp) => topUp.id}
				empty={<Empty title={t("No top-ups.")} />}
				columns={topUpColumns()}
			/>
			<TablePanel
				title={t("Ledger")}
				rows={data.entries}
				rowKey={(entry) => entry.id}
				empty={<Empty title={t("No entries yet.")} />}
				columns={ledgerColumns()}
			/>
		</>
	);
}

function AdjustDialog(props: { id: string; idempotencyKey: string; onClose: () => void; onDone: () => void }) {
	const { id, idempotencyKey, onClose, onDone } = props;
	const [usd, setUsd] = useState("");
	const [reason, setReason] = useState("");
	const [waits, setWaits] = useState(false);
	const adjust = useAction(async () => {
		const { secondLookNeeded } = await operatorApi.adjust(id, usd.trim(), reason.trim(), idempotencyKey);
		if (secondLookNeeded) setWaits(true);
		else onDone();
	});
	if (waits) {
		return (
			<Dialog onClose={onDone} title={t("Adjust the credit")}>
				<DialogDone onClose={onDone}>
					<Notice kind="ok">
						{t(
							"It is recorded and waits. An amount of this size needs another operator, who confirms it on the page of today.",
						)}
					</Notice>
				</DialogDone>
			</Dialog>
		);
	}
	return (
		<ActDialog onClose={onClose} title={t("Adjust the credit")} action={adjust} act={t("Book it")} fields={["usd"]}>
			<TextField
				label={t("Amount in USD")}
				description={t("Negative takes credit away: -12.50")}
				inputMode="decimal"
				pattern="-?[0-9]+(\.[0-9]{1,9})?"
				data-autofocus
				value={usd}
				error={fieldError(adjust, "usd")}
				onChange={setUsd}
			/>
			<TextField
				label={t("Reason")}
				description={t("Stands in the customer's ledger and in the audit log")}
				value={reason}
				onChange={setReason}
			/>
		</ActDialog>
	);
}

/**
 * A version 4 UUID. `crypto.randomUUID` exists only in a secure context; a console at a plain HTTP address is not one.
 */
function newUuid(): string {
	const bytes = crypto.getRandomValues(new Uint8Array(16));
	bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
	bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
	const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
	return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
