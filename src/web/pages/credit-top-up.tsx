import { Group, SegmentedControl, Skeleton, Stack } from "@mantine/core";
import { useState } from "react";
import { formatUsd, MAX_NANO_USD, parseUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { type AlertView, api, type CreditView, type RunningRequest, type TopUpView } from "../api.ts";
import { mailedBelow } from "../labels.ts";
import { BalanceFigures } from "../parts/account-tables.tsx";
import { CodeBlock } from "../parts/code.tsx";
import { UsdField } from "../parts/fields.tsx";
import { ActButton, fieldError, LinkButton, PanelForm } from "../parts/form.tsx";
import { DetailList, Empty, Notice, Panel } from "../parts/page.tsx";
import { type Column, DataTable, fromItems } from "../parts/table.tsx";
import { Amount, CopyableId, RelativeTime, Timestamp } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount, useSession } from "../session.tsx";
import { rich, showUsd, showUsdWhole, t } from "../texts.tsx";
import { useAttempt } from "../token.ts";

const PRESETS_USD = ["100", "250", "500", "1000"];
/** Time after which the form is enabled again if the browser did not reach the payment page. */
const LEAVING_MS = 15_000;

/** A bank transfer that the customer must make, with the operator's bank details. */
type Transfer = Pick<TopUpView, "amountNanoUsd" | "reference"> & { transferDetails: string | null };

/** `transferDetails`: bank details in lines; null: the operator sends them; undefined: not loaded yet. */
export function TopUpPanel(props: { transferDetails: string | null | undefined; onMade: () => void }) {
	const { transferDetails, onMade } = props;
	const { config } = useSession();
	const account = useAccount();
	const [usd, setUsd] = useState("100");
	const [method, setMethod] = useState<"card" | "transfer">(config.cardPayments ? "card" : "transfer");
	const most = method === "card" ? config.topUpByCardMaxNanoUsd : config.topUpMaxNanoUsd;
	const [made, setMade] = useState<Transfer>();
	const [outside, setOutside] = useState<string>();
	const attempt = useAttempt();
	const topUp = useAction(async () => {
		if (method === "card") {
			location.assign((await attempt.send({ usd, method }, (token) => api.topUpByCard(account.id, usd, token))).url);
			// The form stays disabled until the browser leaves the page: a second click would create another top-up.
			await left();
			return;
		}
		const { topUp: expected, transferDetails: details } = await attempt.send({ usd, method }, (token) =>
			api.topUpByTransfer(account.id, usd, token),
		);
		setMade({ ...expected, transferDetails: details });
		onMade();
	});

	function submit() {
		const { topUpMinNanoUsd: least } = config;
		// The field accepts digits only, so an amount that cannot be parsed is too large.
		const amount = usd === "" ? ZERO_USD : (parseUsd(usd) ?? MAX_NANO_USD);
		if (amount < least) setOutside(t("A top-up is at least {least}.", { least: showUsd(least) }));
		else if (amount > most) setOutside(t("A top-up is at most {most}.", { most: showUsd(most) }));
		else void topUp.run();
	}
	function choose(amount: string) {
		setUsd(amount);
		setOutside(undefined);
		topUp.clear();
	}

	if (made) return <MadeTransfer made={made} onAgain={() => setMade(undefined)} />;
	return (
		<Panel title={t("Top up")}>
			<PanelForm
				action={topUp}
				act={method === "card" ? t("Pay by card") : t("Create the top-up")}
				main
				onSubmit={submit}
				disabled={usd === ""}
				fields={["usd"]}
			>
				<Presets usd={usd} onChoose={choose} />
				<UsdField
					label={t("Amount in USD")}
					description={t("From {topUpMin} to {topUpMax} at a time", {
						topUpMin: showUsd(config.topUpMinNanoUsd),
						topUpMax: showUsd(most),
					})}
					required
					withAsterisk={false}
					value={usd}
					error={outside ?? fieldError(topUp, "usd")}
					onChange={choose}
				/>
				{config.cardPayments && (
					<SegmentedControl
						aria-label={t("Method")}
						data={[
							{ value: "card", label: t("Card") },
							{ value: "transfer", label: t("Bank transfer") },
						]}
						value={method}
						onChange={(value) => {
							setMethod(value === "card" ? "card" : "transfer");
							setOutside(undefined);
						}}
					/>
				)}
				<p className="small dim">
					{method === "card"
						? t("You pay on Stripe's page. Credit is added when Stripe confirms the payment.")
						: t(
								"You get a payment reference for your transfer. Credit is added when the operator confirms the payment.",
							)}
				</p>
				{method === "transfer" && transferDetails !== undefined && <TransferDetails details={transferDetails} />}
			</PanelForm>
		</Panel>
	);
}

function MadeTransfer({ made, onAgain }: { made: Transfer; onAgain: () => void }) {
	return (
		<Panel title={t("Top up")}>
			<Stack gap={14}>
				<Notice kind="ok">{t("Your top-up is pending. Transfer the amount with these details:")}</Notice>
				<DetailList
					of={{
						[t("Amount")]: <Amount nanoUsd={made.amountNanoUsd} />,
						[t("Reference")]: <CopyableId value={made.reference} label={t("Copy the reference")} />,
					}}
				/>
				<TransferDetails details={made.transferDetails} />
				<p className="dim">
					{t(
						"Use exactly this reference, so that the payment can be matched. When it arrives, an operator confirms it, and the credit and a receipt appear on this page.",
					)}
				</p>
				<Group justify="flex-end" gap="xs">
					<ActButton size="sm" label={t("New top-up")} onClick={onAgain} />
				</Group>
			</Stack>
		</Panel>
	);
}

function Presets({ usd, onChoose }: { usd: string; onChoose: (usd: string) => void }) {
	return (
		<Group gap="xs" role="group" aria-label={t("Common amounts")}>
			{PRESETS_USD.map((preset) => (
				<ActButton
					key={preset}
					label={showUsdWhole(parseUsd(preset) ?? ZERO_USD)}
					look={usd === preset ? "main" : "plain"}
					pressed={usd === preset}
					onClick={() => onChoose(preset)}
				/>
			))}
		</Group>
	);
}

function TransferDetails({ details }: { details: string | null }) {
	if (details === null)
		return <p className="small dim">{t("The operator of the service sends you the bank details.")}</p>;
	return (
		<section aria-label={t("Bank details")}>
			<CodeBlock code={details} label={t("Copy the bank details")} />
		</section>
	);
}

/** Resolves when the browser returns to this page from its history, or after `LEAVING_MS`. */
const left = () =>
	new Promise<unknown>((resolve) => {
		setTimeout(resolve, LEAVING_MS);
		addEventListener("pageshow", resolve, { once: true });
	});

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
	{
		label: t("Request"),
		lead: true,
		render: (row) => <CopyableId value={row.requestId} label={t("Copy the request's id")} />,
	},
	{ label: t("Model"), render: (row) => row.model },
	{ label: t("Key"), render: (row) => <Link to={`/keys/${row.keyId}`}>{row.keyName}</Link> },
	{ label: t("Since"), render: (row) => <RelativeTime atMs={row.admittedAtMs} /> },
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
				<p className="small dim">
					{rich("Last sent {lastSent}", { lastSent: <Timestamp atMs={alert.lastSentAtMs} /> })}
				</p>
			)}
		</PanelForm>
	);
}
