import { Group, SegmentedControl, Stack } from "@mantine/core";
import { useState } from "react";
import { MAX_NANO_USD, parseUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { api } from "../api.ts";
import { CodeBlock } from "../parts/code.tsx";
import { UsdField } from "../parts/fields.tsx";
import { ActButton, fieldError, PanelForm } from "../parts/form.tsx";
import { DetailList, Panel } from "../parts/page.tsx";
import { Notice } from "../parts/problem.tsx";
import { Amount, Id } from "../parts/text.tsx";
import { useAction } from "../resource.ts";
import { useAccount, useSession } from "../session.tsx";
import { showUsd, showUsdWhole } from "../shown-money.ts";
import { t } from "../texts.tsx";
import { useAttempt } from "../token.ts";
import type { TopUpView } from "../views.ts";

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
			const { url } = await attempt.send({ usd, method }, (token) => api.topUpByCard(account.id, usd, token));
			location.assign(url);
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
						[t("Reference")]: <Id value={made.reference} label={t("Copy the reference")} />,
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
function left(): Promise<void> {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, LEAVING_MS);
		addEventListener(
			"pageshow",
			() => {
				clearTimeout(timer);
				resolve();
			},
			{ once: true },
		);
	});
}
