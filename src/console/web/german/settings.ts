export const settings = {
	Owner: "Inhaber",
	Admin: "Administrator",
	Developer: "Entwickler",
	Billing: "Abrechnung",
	Viewer: "Betrachter",
	"Member (as before)": "Mitglied (wie bisher)",
	"see the overview, usage, requests, batches and members":
		"Übersicht, Verbrauch, Anfragen, Stapel und Mitglieder sehen",
	"see keys, never their secrets": "Schlüssel sehen, nie deren Geheimnisse",
	"make, change, rotate and revoke keys": "Schlüssel anlegen, ändern, ersetzen und widerrufen",
	"use the playground with a key, run batches and fetch their files":
		"Modelle mit einem Schlüssel ausprobieren, Stapel starten und ihre Dateien abrufen",
	"see top-ups, the ledger and receipts": "Aufladungen, Kontobewegungen und Belege sehen",
	"top up and set the alert of low credit": "aufladen und die Warnung bei niedrigem Guthaben einstellen",
	"save a card and have credit bought with it automatically":
		"eine Karte hinterlegen und damit automatisch aufladen lassen",
	"say what receipts are made out to": "angeben, auf wen Belege ausgestellt werden",
	"name the account and decide who is told of batches":
		"das Konto benennen und bestimmen, wer über Stapel benachrichtigt wird",
	"invite and remove others and give them roles": "andere einladen, entfernen und ihnen Rollen geben",
	"set up the company's sign-in": "die Anmeldung des Unternehmens einrichten",
	"make, change and remove owners": "Inhaber ernennen, ändern und entfernen",
	"get mails about batches, credit, caps and keys that end":
		"E-Mails zu Stapeln, Guthaben, Obergrenzen und ablaufenden Schlüsseln erhalten",
} as const;
