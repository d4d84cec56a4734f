import { Skeleton, Stack } from "@mantine/core";
import { useState } from "react";
import { formatUsd } from "../../money/nano-usd.ts";
import { api } from "../api.ts";
import { mailedBelow } from "../labels.ts";
import { BalanceFigures } from "../parts/balance-figures.tsx";
import { UsdField } from "../parts/fields.tsx";
import { ActButton, fieldError, LinkButton, PanelForm } from "../parts/form.tsx";
import { Panel } from "../parts/page.tsx";
import { Empty, Notice } from "../parts/problem.tsx";
import { type Column, DataTable, fromItems } from "../parts/table.tsx";
import { Ago, Amount, Id, Moment } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount } from "../session.tsx";
import { showUsd } from "../shown-money.ts";
import { rich, t } from "../texts.tsx";
import type { AlertView, CreditView, RunningRequest } from "../views.ts";

export function BalancePanel({ credit }: { credit: CreditView | undefined }) {
	const account = useAccount();
	const [open, setOpen] = useState(() => location.hash === "#held");
	const running = useResource(open ? `running ${account.id}` : null, () => api.running(account.id));
	return (
		<Panel title={t("Balance")}>
			<BalanceFigures balance={credit?.balance} promotions={credit?.promotions}>
				<LinkButton id="held" aria-expanded={open} onClick={() => setOpen(!open)}>
					{t("Why is credit held?")}
				</LinkButton>
			</BalanceFigures>
			{open && (
				<Stack mt="sm">
					<p className="dim">
						{t(
							"A running request reserves its maximum cost. When it ends, its actual cost is charged and the rest is released.",
						)}
					</p>
					{credit && credit.heldByAbsentInstancesNanoUsd > 0 && (
						<Notice kind="warn">
							{rich(
								"{heldByAbsentInstances} is held by an instance of the service that is offline. It is released when that instance's journal is recovered.",
								{ heldByAbsentInstances: <Amount nanoUsd={credit.heldByAbsentInstancesNanoUsd} /> },
							)}
						</Notice>
					)}
					<DataTable
						label={t("Running requests")}
						columns={RUNNING_COLUMNS}
						{...fromItems(running)}
						rowKey={(row) => row.requestId}
						empty={<Empty title={t("No request is running.")} />}
					/>
				</Stack>
			)}
		</Panel>
	);
}

const RUNNING_COLUMNS: readonly Column<RunningRequest>[] = [
	{ label: t("Request"), lead: true, render: (row) => <Id value={row.requestId} label={t("Copy the request's id")} /> },
	{ label: t("Model"), render: (row) => row.model },
	{ label: t("Key"), render: (row) => <Link to={`/keys/${row.keyId}`}>{row.keyName}</Link> },
	{ label: t("Since"), render: (row) => <Ago atMs={row.admittedAtMs} /> },
	{ label: t("Held"), amount: (row) => row.reservedNanoUsd, corner: true },
];

/** Setting of the mail that owners get when the available credit falls below an amount. */
export function AlertPanel({ alert, onChanged }: { alert: AlertView | undefined; onChanged: () => void }) {
	return (
		<Panel title={t("Low-balance alert")}>
			{alert ? <AlertForm alert={alert} onChanged={onChanged} /> : <Skeleton height={90} />}
		</Panel>
	);
}

function AlertForm({ alert, onChanged }: { alert: AlertView; onChanged: () => void }) {
	const account = useAccount();
	const threshold = alert.thresholdNanoUsd;
	const [typed, setTyped] = useState<string>();
	const change = async (usd: string | null) => {
		await api.setAlert(account.id, usd);
		setTyped(undefined);
		onChanged();
	};
	const save = useAction(async () => change(typed ?? null));
	const off = useAction(async () => change(null));
	return (
		<PanelForm
			action={save}
			act={t("Save")}
			main
			disabled={!typed}
			error={save.error ?? off.error}
			fields={["usd"]}
			more={threshold !== null && <ActButton size="sm" label={t("Switch off")} action={off} />}
		>
			<p>
				{threshold === null
					? t("No alert set. Requests fail with status 402 when the credit runs out.")
					: mailedBelow(showUsd(threshold))}
			</p>
			<UsdField
				label={t("Send a mail below (USD)")}
				placeholder={threshold === null ? "25" : ""}
				value={typed ?? (threshold === null ? "" : formatUsd(threshold))}
				error={fieldError(save, "usd")}
				onChange={setTyped}
			/>
			{alert.lastSentAtMs !== null && (
				<p className="small dim">{rich("Last sent {lastSent}", { lastSent: <Moment atMs={alert.lastSentAtMs} /> })}</p>
			)}
		</PanelForm>
	);
}
