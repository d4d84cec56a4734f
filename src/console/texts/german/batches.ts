export const batches = {
	Paused: "Angehalten",
	"Lines that are done": "Erledigte Zeilen",
	"{done} of {total}": "{done} von {total}",
	", {count} failed": ", {count} fehlgeschlagen",
	"Start a batch": "Stapel starten",
	"File of requests": "Datei mit Anfragen",
	"The browser cannot read this file. Choose it again.":
		"Der Browser kann diese Datei nicht lesen. Wählen Sie sie noch einmal.",
	"A request on each line, as JSON with custom_id, method, url and body.":
		"Eine Anfrage in jeder Zeile, als JSON mit custom_id, method, url und body.",
	"Choose a .jsonl file": ".jsonl-Datei wählen",
	"Files of more than 32 MB are sent with an SDK, or from a terminal with {code}.":
		"Dateien von mehr als 32 MB senden Sie mit einem SDK oder aus einem Terminal mit {code}.",
	"{count} requests to {endpoint}": { one: "{count} Anfrage an {endpoint}", other: "{count} Anfragen an {endpoint}" },
	"Its cap and its models hold for every line.": "Seine Obergrenze und seine Modelle gelten für jede Zeile.",
	Start: "Starten",
	File: "Datei",
	Lines: "Zeilen",
	"Expected end": "Voraussichtliches Ende",
	"Cost so far": "Bisherige Kosten",
	"Many requests in one file, done within a day. Its lines and their answers are kept: encrypted, for 30 days at most.":
		"Viele Anfragen in einer Datei, binnen eines Tages erledigt. Ihre Zeilen und die Antworten werden aufbewahrt: verschlüsselt und höchstens 30 Tage.",
	"No batches yet.": "Noch keine Stapel.",
	"A file with a request on each line is worked through when the models have room, at their batch rates. Drop one here to check it.":
		"Eine Datei mit einer Anfrage in jeder Zeile wird abgearbeitet, wenn die Modelle Platz haben, zu deren Stapelpreisen. Ziehen Sie eine hierher, um sie zu prüfen.",
	Batch: "Stapel",
	"There is no such batch in this account.": "In diesem Konto gibt es keinen solchen Stapel.",
	"All batches": "Alle Stapel",
	"Copy the batch's id": "Kennung des Stapels kopieren",
	"Cancel the rest": "Rest abbrechen",
	"What failed": "Fehlgeschlagenes",
	"It is paused: {why}": "Er ist angehalten: {why}",
	"Its requests": "Seine Anfragen",
	Endpoint: "Endpunkt",
	"Window ends": "Frist endet",
	"What is wrong": "Was nicht stimmt",
	"Line {line}: {message}": "Zeile {line}: {message}",
} as const;
