import { Stack } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { BalanceFigures } from "../parts/balance-figures.tsx";
import { LinkButton } from "../parts/form.tsx";
import { Panel } from "../parts/page.tsx";
import { Empty, Notice } from "../parts/problem.tsx";
import { type Column, DataTable, fromItems } from "../parts/table.tsx";
import { Ago, Amount, Id } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount } from "../session.tsx";
import { rich, t } from "../texts.tsx";
import type { CreditView, RunningRequest } from "../views.ts";

export function BalancePanel({ credit }: { credit: CreditView | undefined }) {
	const account = useAccount();
	const [open, setOpen] = useState(() => location.hash === "#held");
	const running = useResource(open ? `running ${account.id}` : null, () => api.running(account.id));
	return (
		<Panel title={t("Balance")}>
			<BalanceFigures balance={credit?.balance}>
				<LinkButton id="held" aria-expanded={open} onClick={() => setOpen(!open)}>
					{t("What is held?")}
				</LinkButton>
			</BalanceFigures>
			{open && (
				<Stack mt="sm">
					<p className="dim">
						{t(
							"A running request holds the most that it can cost. When it ends it is charged what it used and the rest is free again.",
						)}
					</p>
					{credit && credit.heldByAbsentInstancesNanoUsd > 0 && (
						<Notice kind="warn">
							{rich(
								"{heldByAbsentInstances} is held for an instance of the service that is not running. It comes back when that instance's books are read.",
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
