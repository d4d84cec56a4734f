import { Button, TextInput } from "@mantine/core";
import { useState } from "react";
import { authApi } from "../auth-api.ts";
import { CodeBlock } from "../parts/code.tsx";
import { Panel } from "../parts/page.tsx";
import { PasswordField } from "../parts/password-field.tsx";
import { Notice, Problem } from "../parts/problem.tsx";
import { QrCode } from "../parts/qr-code.tsx";
import { Id } from "../parts/text.tsx";
import { useAction } from "../resource.ts";
import { useSession } from "../session.tsx";
import { t } from "../texts.tsx";

/** A one-time code beside the password. Switching it on is finished by a first code, so that nobody locks himself out. */
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
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					void (on ? disable : enable).run();
				}}
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
					<TextInput
						label={t("A code of the app, or a backup code")}
						autoComplete="one-time-code"
						required
						withAsterisk={false}
						value={code}
						onChange={(event) => setCode(event.currentTarget.value)}
					/>
				)}
				{failure && <Problem error={failure} />}
				<div className="form-end">
					<Button type="submit" variant="default" loading={enable.busy || disable.busy}>
						{on ? t("Switch off") : t("Set up")}
					</Button>
				</div>
			</form>
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
		<form
			className="form"
			onSubmit={(event) => {
				event.preventDefault();
				void confirm.run();
			}}
		>
			<p>{t("Scan this with an authenticator app, or type the secret into it.")}</p>
			<QrCode text={props.setup.totpURI} label={t("The secret as a QR code")} />
			<Id value={secret} label={t("Copy the secret")} />
			<Notice kind="warn">{t("Keep these backup codes. Each opens the account once if the app is lost.")}</Notice>
			<CodeBlock code={props.setup.backupCodes.join("\n")} label={t("Copy the backup codes")} />
			<TextInput
				label={t("A code from the app")}
				inputMode="numeric"
				autoComplete="one-time-code"
				required
				withAsterisk={false}
				value={code}
				onChange={(event) => setCode(event.currentTarget.value)}
			/>
			{confirm.error && <Problem error={confirm.error} />}
			<div className="form-end">
				<Button type="submit" loading={confirm.busy}>
					{t("Switch on")}
				</Button>
			</div>
		</form>
	);
}
