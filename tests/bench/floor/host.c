// The floor of the comparison: the least that a host costs which runs each command on a terminal of its own.
//
// It has no guard, no journal, no console, no filter, and looks at nobody who connects: what rexec-host costs beyond this
// program is the price of what it does beyond it. One connection (SOCK_SEQPACKET) is one command:
//
//   shell > host   one message: the command's text
//   host > shell   'o' and output, as often as there is some; 'x' and the exit code last
//
// usage: host SOCKET

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 128 << 10, OUTPUT_BYTES = 32 << 10 };

// What an event is about. A run has one of each, and an event carries its address.
struct source {
    enum { LISTENER, CLIENT, TERMINAL, PROCESS } kind;
    int fd;
    struct run *run;
};

// One command. It is over when its process has ended and its terminal has been read to the end.
struct run {
    struct source client, terminal, process;
    pid_t pid;
    unsigned char code;
};

static int epoll;
static struct termios modes;

static void watch(struct source *source) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, source->fd, &event) != 0) err(1, "epoll_ctl");
}

// A child that has just been forked still has a copy of the descriptor, so closing it alone would not end its events.
static void forget(struct source *source) {
    epoll_ctl(epoll, EPOLL_CTL_DEL, source->fd, NULL);
    close(source->fd);
    source->fd = -1;
}

static void accept_one(int listener) {
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) err(1, "calloc");
    run->client = (struct source){CLIENT, accept4(listener, NULL, NULL, SOCK_CLOEXEC), run};
    run->terminal = (struct source){TERMINAL, -1, run};
    run->process = (struct source){PROCESS, -1, run};
    if (run->client.fd < 0) err(1, "accept4");
    watch(&run->client);
}

// A client says its command once, and later only that it has gone.
static void hear(struct run *run) {
    static char text[TEXT_BYTES_MAX + 1];
    ssize_t length = recv(run->client.fd, text, TEXT_BYTES_MAX, 0);
    if (length <= 0 || run->pid != 0) {
        if (run->pid > 0) kill(-run->pid, SIGKILL);
        epoll_ctl(epoll, EPOLL_CTL_DEL, run->client.fd, NULL);
        return;
    }
    text[length] = 0;
    run->pid = forkpty(&run->terminal.fd, NULL, &modes, NULL);
    if (run->pid < 0) err(1, "forkpty");
    if (run->pid == 0) {
        int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, 0);
        close(nothing);
        execl("/bin/sh", "sh", "-c", text, (char *)NULL);
        _exit(127);
    }
    // Later children must not hold this terminal.
    fcntl(run->terminal.fd, F_SETFD, FD_CLOEXEC);
    run->process.fd = (int)syscall(SYS_pidfd_open, run->pid, 0);
    if (run->process.fd < 0) err(1, "pidfd_open");
    watch(&run->terminal);
    watch(&run->process);
}

// Closes the run if both its process and its output have ended.
static void close_if_over(struct run *run) {
    if (run->process.fd >= 0 || run->terminal.fd >= 0) return;
    unsigned char end[2] = {'x', run->code};
    send(run->client.fd, end, sizeof end, MSG_NOSIGNAL);
    forget(&run->client);
    free(run);
}

// Passes output on. A terminal whose processes have all closed it answers EIO.
static void relay(struct run *run) {
    static char message[1 + OUTPUT_BYTES] = {'o'};
    ssize_t length = read(run->terminal.fd, message + 1, OUTPUT_BYTES);
    if (length > 0) {
        send(run->client.fd, message, 1 + (size_t)length, MSG_NOSIGNAL);
        return;
    }
    forget(&run->terminal);
    close_if_over(run);
}

static void reap(struct run *run) {
    int status;
    if (waitpid(run->pid, &status, 0) != run->pid) err(1, "waitpid");
    run->code = (unsigned char)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    forget(&run->process);
    close_if_over(run);
}

// The modes of a new terminal, but for the changing of output.
static void choose_modes(void) {
    int master, slave;
    if (openpty(&master, &slave, NULL, NULL, NULL) != 0 || tcgetattr(slave, &modes) != 0) err(1, "openpty");
    modes.c_oflag &= ~(tcflag_t)OPOST;
    close(master);
    close(slave);
}

int main(int count, char **arguments) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (count != 2 || strlen(arguments[1]) + 2 > sizeof address.sun_path) errx(2, "usage: host SOCKET");
    // Under this name until somebody listens.
    strcat(strcpy(address.sun_path, arguments[1]), "~");
    choose_modes();
    epoll = epoll_create1(EPOLL_CLOEXEC);
    struct source door = {LISTENER, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), NULL};
    if (bind(door.fd, (struct sockaddr *)&address, sizeof address) != 0) err(1, "%s", address.sun_path);
    if (listen(door.fd, 1024) != 0) err(1, "listen");
    if (rename(address.sun_path, arguments[1]) != 0) err(1, "%s", arguments[1]);
    watch(&door);
    for (;;) {
        // One event at a time, because an event may end the run of the next one.
        struct epoll_event event;
        if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
        struct source *source = event.data.ptr;
        switch (source->kind) {
        case LISTENER: accept_one(source->fd); break;
        case CLIENT: hear(source->run); break;
        case TERMINAL: relay(source->run); break;
        case PROCESS: reap(source->run); break;
        }
    }
}
