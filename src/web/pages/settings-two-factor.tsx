import { useState } from "react";
import { encode } from "uqr";
import { authApi } from "../auth-api.ts";
import { CodeBlock } from "../parts/code.tsx";
import { PasswordField, TextField } from "../parts/fields.tsx";
import { Form, PanelEnd } from "../parts/form.tsx";
import { Panel } from "../parts/page.tsx";
import { Notice } from "../parts/problem.tsx";
import { Id } from "../parts/text.tsx";
import { useAction } from "../resource.ts";
import { useSession } from "../session.tsx";
import { t } from "../texts.tsx";

/**
 * One-time codes in addition to the password. Switching on requires a first code, so that a broken setup locks no user
 * out.
 */
export function TwoFactorPanel() {
	const { me, config, refresh } = useSession();
	const [setup, setSetup] = useState<{ totpURI: string; backupCodes: readonly string[] }>();
	const [password, setPassword] = useState("");
	const [code, setCode] = useState("");
	const on = me?.user.twoFactorEnabled ?? false;
	const enable = useAction(async () => {
		setSetup(await authApi.enableTwoFactor(password));
		setPassword("");
	});
	const disable = useAction(async () => {
		await authApi.disableTwoFactor(password, code.trim());
		setPassword("");
		setCode("");
		await refresh();
	});
	if (!config.twoFactor) return null;
	const failure = enable.error ?? disable.error;
	if (setup) {
		return (
			<Panel title={t("Second factor")}>
				<Confirm
					setup={setup}
					onDone={async () => {
						await refresh();
						setSetup(undefined);
					}}
				/>
			</Panel>
		);
	}
	return (
		<Panel title={t("Second factor")}>
			<Form
				onSubmit={() => {
					void (on ? disable : enable).run();
				}}
				error={failure}
				end={<PanelEnd label={on ? t("Switch off") : t("Set up")} busy={enable.busy || disable.busy} />}
			>
				<p>
					{on
						? t("A code of your authenticator app is asked for when you sign in.")
						: t("With a second factor a stolen password alone opens nothing. Setting it up ends all other sessions.")}
				</p>
				<PasswordField
					label={t("Your password")}
					autoComplete="current-password"
					value={password}
					onChange={setPassword}
				/>
				{on && (
					<TextField
						label={t("A code of the app, or a backup code")}
						autoComplete="one-time-code"
						value={code}
						onChange={setCode}
					/>
				)}
			</Form>
		</Panel>
	);
}

function Confirm(props: { setup: { totpURI: string; backupCodes: readonly string[] }; onDone: () => Promise<void> }) {
	const [code, setCode] = useState("");
	const confirm = useAction(async () => {
		await authApi.verifyTotp(code.replace(/\s/g, ""), false);
		await props.onDone();
	});
	const secret = new URL(props.setup.totpURI).searchParams.get("secret") ?? "";
	return (
		<Form
			onSubmit={confirm.run}
			error={confirm.error}
			end={<PanelEnd label={t("Switch on")} busy={confirm.busy} main />}
		>
			<p>{t("Scan this with an authenticator app, or type the secret into it.")}</p>
			<QrCode text={props.setup.totpURI} label={t("The secret as a QR code")} />
			<Id value={secret} label={t("Copy the secret")} />
			<Notice kind="warn">{t("Keep these backup codes. Each opens the account once if the app is lost.")}</Notice>
			<CodeBlock code={props.setup.backupCodes.join("\n")} label={t("Copy the backup codes")} />
			<TextField
				label={t("A code from the app")}
				inputMode="numeric"
				autoComplete="one-time-code"
				value={code}
				onChange={setCode}
			/>
		</Form>
	);
}

/** Width of the quiet zone in modules; scanners need it. */
const BORDER = 2;
/** A QR code holds at most 2,953 bytes; one of this size is already hard to scan from a screen. */
const BYTES_MAX = 1_000;

/**
 * Black on white in both colour schemes, as scanners expect. Draws nothing if the text is too long: the page shows it
 * as text too.
 */
function QrCode({ text, label }: { text: string; label: string }) {
	if (new TextEncoder().encode(text).length > BYTES_MAX) return null;
	const { data, size } = encode(text, { border: BORDER });
	const path = data.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
	return (
		<svg className="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shapeRendering="crispEdges">
			<path d={path} fill="#000" />
		</svg>
	);
}
